"""Convolutions, in any number of axes."""

from __future__ import annotations

from collections.abc import Sequence

from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


@op("aten::convolution", "aten::_convolution", "aten::convolution_overrideable")
def convolution(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *_backend_flags: bool,
) -> Tensor:
    """convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
    bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"""
    spatial = weight.rank - 2
    pads = _each(padding, spatial)
    more = {"output_padding": _each(output_padding, spatial) if any(output_padding) else None} if transposed else {}
    batched = input if input.rank == weight.rank else op.Unsqueeze(input, op.ints(0))
    emit = op.ConvTranspose if transposed else op.Conv
    result = emit(
        batched,
        weight,
        bias,
        strides=_each(stride, spatial),
        pads=pads + pads,
        dilations=_each(dilation, spatial),
        group=groups,
        **more,
    )
    return result if batched is input else op.Squeeze(result, op.ints(0))


def _each(values: Sequence[int] | int, count: int) -> list[int]:
    """One number may stand for all axes."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * count if len(listed) == 1 else listed


@op("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Tensor:
    """conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,
    SymInt[2] dilation=1, SymInt groups=1) -> Tensor"""
    return convolution(op, input, weight, bias, stride, padding, dilation, False, (), groups)


@op("aten::conv_transpose1d", "aten::conv_transpose2d.input", "aten::conv_transpose3d.input")
def conv_transpose(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    dilation: Sequence[int] = (1,),
) -> Tensor:
    """conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,
    SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor"""
    return convolution(op, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


@op("aten::conv1d.padding", "aten::conv2d.padding", "aten::conv3d.padding")
def conv_named_padding(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: str = "valid",
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Tensor:
    """conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding="valid",
    SymInt[2] dilation=1, SymInt groups=1) -> Tensor; what "same" cannot halve goes to the end."""
    spatial = weight.rank - 2
    pads = [0] * spatial
    if padding == "same":
        kernel = [int(size) for size in weight.known_sizes[2:]]
        pads = [step * (size - 1) for step, size in zip(_each(dilation, spatial), kernel, strict=True)]
    before = [total // 2 for total in pads]
    after = [total - half for total, half in zip(pads, before, strict=True)]
    batched = input if input.rank == weight.rank else op.Unsqueeze(input, op.ints(0))
    result = op.Conv(
        batched,
        weight,
        bias,
        strides=_each(stride, spatial),
        pads=before + after,
        dilations=_each(dilation, spatial),
        group=groups,
    )
    return result if batched is input else op.Squeeze(result, op.ints(0))
