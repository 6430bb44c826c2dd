"""Convolutions, in any number of axes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import count, floor_div
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_RUNTIME_CONVOLVES = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16))
"""bfloat16 is cast to float32 and back."""


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
    after, more = pads, {}
    if transposed and any(output_padding):
        more = {"output_padding": _each(output_padding, spatial)}
        if any(extra >= step for extra, step in zip(more["output_padding"], _each(stride, spatial), strict=True)):
            # The runtime refuses as much; cutting less off the end gives the same.
            after = [pad - extra for pad, extra in zip(pads, more.pop("output_padding"), strict=True)]
    strides, dilations = _each(stride, spatial), _each(dilation, spatial)
    if not transposed:
        return _conv(op, input, weight, bias, strides, pads + pads, dilations, groups)
    alone = input.rank < weight.rank
    batched = op.reshape(input, (1, *input.known_sizes)) if alone else input
    if batched.dtype not in _RUNTIME_CONVOLVES and all(isinstance(size, int) for size in weight.known_sizes):
        extra = _each(output_padding, spatial) if any(output_padding) else [0] * spatial
        result = _transposed_by_products(op, batched, weight, bias, strides, pads, extra, dilations, groups)
        return op.Squeeze(result, op.ints(0)) if alone else result
    if groups == 1 and not op.sizes.is_positive(weight.known_sizes[0]):
        batched, weight = _one_more(op, batched, 1), _one_more(op, weight, 0)
    beyond = [max(0, -pad) for pad in after]
    result = op.ConvTranspose(
        batched,
        weight,
        None if any(beyond) else bias,
        strides=strides,
        pads=pads + [max(0, pad) for pad in after],
        dilations=dilations,
        group=groups,
        **more,
    )
    if any(beyond):
        # Nothing of the input reaches there: only the bias does.
        nothing = [0] * (2 + spatial)
        result = op.Pad(result, op.ints(*nothing, 0, 0, *beyond))
        if bias is not None:
            result = op.Add(result, op.Unsqueeze(bias, op.ints(*range(1, 1 + spatial))))
    return op.Squeeze(result, op.ints(0)) if alone else result


def _conv(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Tensor:
    """With or without a batch."""
    alone = input.rank < weight.rank
    x = op.reshape(input, (1, *input.known_sizes)) if alone else input
    channels = x.known_sizes[1]
    may_be_none = groups == 1 and not op.sizes.is_positive(channels)
    if may_be_none:
        # The runtime does not come back from a convolution of no channels: one of zeros changes nothing.
        x, weight = _one_more(op, x, 1), _one_more(op, weight, 1)
    if x.dtype not in _RUNTIME_CONVOLVES:
        result = _by_products(op, x, weight, bias, strides, pads, dilations, groups)
    else:
        result = op.Conv(x, weight, bias, strides=strides, pads=pads, dilations=dilations, group=groups)
    if may_be_none:
        # Eager makes none of none, whatever the weight says.
        made = op.Mul(op.Shape(weight, start=0, end=1), op.Min(op.sizes.length(channels), op.ints(1)))
        result = op.Slice(result, op.ints(0), made, op.ints(1))
    return op.Squeeze(result, op.ints(0)) if alone else result


def _one_more(op: Builder, x: Tensor, axis: int) -> Tensor:
    """One channel of zeros at the end."""
    pads = [0] * (2 * x.rank)
    pads[x.rank + axis] = 1
    out = op.Pad(x, op.ints(*pads))
    if x.sizes is not None:
        out.settle(tuple(size + 1 if i == axis else size for i, size in enumerate(x.sizes)))
    return out


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
    strides, dilations = _each(stride, spatial), _each(dilation, spatial)
    return _conv(op, input, weight, bias, strides, before + after, dilations, groups)


def _windows(
    op: Builder, x: Tensor, kernel: Sequence[Size], stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    """(batch, channels, *kernel, *windows): every window of an image. `pads` are those before, then those after.

    Each axis is read by a table of positions, one row for each place of the kernel, one column for each window.
    """
    spatial = len(kernel)
    batch, channels, *lengths = x.known_sizes
    before, after = pads[:spatial], pads[spatial:]
    if any(pads):
        x = op.Pad(x, op.ints(0, 0, *before, 0, 0, *after))
    windows: list[Size] = []
    for i, size in enumerate(kernel):
        free = lengths[i] + before[i] + after[i] - dilation[i] * (size - 1) - 1
        windows.append(floor_div(free, stride[i]) + 1)
        within = op.Mul(op.Unsqueeze(op.range(size), op.ints(1)), op.const(dilation[i]))
        x = op.Gather(x, op.Add(within, op.Mul(op.range(windows[-1]), op.const(stride[i]))), axis=2 + 2 * i)
    x.sizes = (batch, channels, *(n for pair in zip(kernel, windows, strict=True) for n in pair))
    return op.transpose(x, [0, 1, *range(2, 2 + 2 * spatial, 2), *range(3, 3 + 2 * spatial, 2)])


def _by_products(
    op: Builder,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """A convolution as a product of matrices, for float64 and integers: the runtime has no other of them."""
    outputs, inputs, *kernel = weight.known_sizes
    columns = _windows(op, x, kernel, stride, pads, dilation)
    batch, windows = columns.known_sizes[0], columns.known_sizes[2 + len(kernel) :]
    depth = count([inputs, *kernel])
    grouped = op.reshape(columns, (batch, groups, depth, count(windows)))
    product = op.MatMul(op.reshape(weight, (groups, outputs // groups, depth)), grouped)
    product.sizes = (batch, groups, outputs // groups, count(windows))
    out = op.reshape(product, (batch, outputs, *windows))
    return out if bias is None else op.Add(out, op.Unsqueeze(bias, op.ints(*range(1, 1 + len(kernel)))))


def _transposed_by_products(
    op: Builder,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    pads: Sequence[int],
    extra: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The same for a transposed one: a convolution with the kernel turned around, over the input with zeros between."""
    inputs, each, *kernel = (int(size) for size in weight.known_sizes)
    spatial = range(2, 2 + len(kernel))
    for axis, step in zip(spatial, stride, strict=True):
        if step > 1:
            sizes = (*x.known_sizes[:axis], x.known_sizes[axis] * step, *x.known_sizes[axis + 1 :])
            apart = op.Unsqueeze(x, op.ints(axis + 1))
            behind = [0] * (x.rank + 1)
            behind[axis + 1] = step - 1
            x = op.reshape(op.Pad(apart, op.ints(*[0] * (x.rank + 1), *behind)), sizes)
    of_groups = op.reshape(weight, (groups, inputs // groups, each, *kernel))
    swapped = op.transpose(of_groups, [0, 2, 1, *(axis + 1 for axis in spatial)])
    merged = op.reshape(swapped, (groups * each, inputs // groups, *kernel))
    back, end = [-1] * len(kernel), [-(1 << 62)] * len(kernel)
    turned = op.Slice(merged, op.ints(*back), op.ints(*end), op.ints(*spatial), op.ints(*back))
    turned.settle(merged.known_sizes)
    reach = [d * (size - 1) for d, size in zip(dilation, kernel, strict=True)]
    before = [far - pad for far, pad in zip(reach, pads, strict=True)]
    after = [first + more - (step - 1) for first, more, step in zip(before, extra, stride, strict=True)]
    return _by_products(op, x, turned, bias, [1] * len(kernel), [*before, *after], dilation, groups)


@op("aten::col2im")
def col2im(
    op: Builder,
    self: Tensor,
    output_size: Sequence[Size],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)
    -> Tensor"""
    batched = self if self.rank == 3 else op.Unsqueeze(self, op.ints(0))
    picture = op.Col2Im(
        batched,
        op.shape(output_size),
        op.ints(*kernel_size),
        dilations=list(dilation),
        pads=[*padding, *padding],
        strides=list(stride),
    )
    return picture if self.rank == 3 else op.Squeeze(picture, op.ints(0))


@op("aten::im2col")
def im2col(
    op: Builder,
    self: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """im2col(Tensor self, SymInt[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor"""
    batched = self if self.rank == 4 else op.reshape(self, (1, *self.known_sizes))
    columns = _windows(op, batched, kernel_size, stride, [*padding, *padding], dilation)
    return op.reshape(columns, [*op.result.shape[:-1], count(columns.known_sizes[4:])])
