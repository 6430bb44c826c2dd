"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.dtypes import torch_dtype
from trueport.lower.ops.axes import size_of
from trueport.lower.ops.create import filled
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Sizes = Sequence[int | Number]
_RMS_SINCE = 23
FLOAT, HALVES = ir.DataType.FLOAT, (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _ones(op: Builder, sizes: Sequence[Size], dtype: ir.DataType) -> Tensor:
    return op.shared("ones", tuple(sizes), dtype, make=lambda: filled(op, sizes, 1, torch_dtype(dtype)))


def _zeros(op: Builder, sizes: Sequence[Size], dtype: ir.DataType) -> Tensor:
    return op.shared("zeros", tuple(sizes), dtype, make=lambda: filled(op, sizes, 0, torch_dtype(dtype)))


def _standardised(op: Builder, x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    """Mean 0 and variance 1 over the axes."""
    middle = op.ReduceMean(x, op.ints(*axes), keepdims=1)
    apart = op.Sub(x, middle)
    variance = op.ReduceMean(op.Mul(apart, apart), op.ints(*axes), keepdims=1)
    out = op.Div(apart, op.Sqrt(op.Add(variance, eps)))
    out.sizes = x.sizes
    return out


@op("aten::layer_norm")
def layer_norm(
    op: Builder,
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05,
    bool cudnn_enable=True) -> Tensor"""
    if input.dtype == ir.DataType.DOUBLE:  # the operator's epsilon is of single precision
        out = _standardised(op, input, range(input.rank - len(normalized_shape), input.rank), eps)
        out = out if weight is None else op.Mul(out, op.cast(weight, input.element))
        return out if bias is None else op.Add(out, op.cast(bias, input.element))
    scale = weight
    if scale is None:
        scale = _ones(op, [size_of(size) for size in normalized_shape], input.element)
    scale, bias = op.cast(scale, input.element), None if bias is None else op.cast(bias, input.element)
    return op.LayerNormalization(input, scale, bias, axis=-len(normalized_shape), epsilon=eps)


@op("aten::rms_norm", "aten::_fused_rms_norm")
def rms_norm(
    op: Builder, input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None, eps: float | None = None
) -> Tensor | Sequence[Tensor | None]:
    """rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor

    Half precision is computed in single precision, whose epsilon is also the one that eager takes for None. In single
    precision it is one operator since opset 23; before, in the form that ONNX Runtime makes one of
    (`optimise/norms.py`). In double precision neither is right, whose epsilon is single.
    """
    wide = op.cast(input, FLOAT) if input.dtype in HALVES else input
    if eps is None:
        eps = torch.finfo(torch_dtype(wide.element)).eps
    sizes = [size_of(size) for size in normalized_shape]
    if op.opset >= _RMS_SINCE and wide.element == FLOAT and all(isinstance(size, int) and size for size in sizes):
        scale = _ones(op, sizes, FLOAT) if weight is None else op.cast(weight, FLOAT)
        out = op.cast(op.RMSNormalization(wide, scale, axis=-len(sizes), epsilon=eps), input.element)
        return (out, None) if op.node is not None and len(op.node.outputs) == 2 else out
    # Counted from the front: the runtime does not reduce an empty tensor by axes counted from the end.
    axes = op.ints(*range(input.rank - len(normalized_shape), input.rank))
    mean_square = op.ReduceMean(op.Mul(wide, wide), axes, keepdims=1)
    out = op.Mul(wide, op.Reciprocal(op.Sqrt(op.Add(mean_square, eps))))
    out = op.cast(out if weight is None else op.Mul(out, op.cast(weight, wide.element)), input.element)
    return (out, None) if op.node is not None and len(op.node.outputs) == 2 else out


@op("aten::group_norm")
def group_norm(
    op: Builder,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05,
    bool cudnn_enabled=True) -> Tensor"""
    batch, channels, *spatial = input.known_sizes
    within: Size = channels // num_groups
    for size in spatial:
        within = within * size
    groups = op.reshape(input, (batch, num_groups, within))
    if input.dtype == FLOAT:
        ones, zeros = _ones(op, (num_groups,), FLOAT), _zeros(op, (num_groups,), FLOAT)
        out = op.InstanceNormalization(groups, ones, zeros, epsilon=eps)
        out.settle(groups.known_sizes)
    else:
        out = _standardised(op, groups, [2], eps)
    return _scaled(op, op.reshape(out, input.known_sizes), weight, bias)


def _scaled(op: Builder, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Per channel, which is the second axis."""
    axes = op.ints(*range(1, x.rank - 1))

    def per_channel(values: Tensor) -> Tensor:
        values = op.cast(values, x.element)
        return values if x.rank == 2 else op.Unsqueeze(values, axes)

    if weight is not None:
        x = _as(x, op.Mul(x, per_channel(weight)))
    return x if bias is None else _as(x, op.Add(x, per_channel(bias)))


def _as(like: Tensor, x: Tensor) -> Tensor:
    x.sizes = like.sizes
    return x


@op("aten::batch_norm")
def batch_norm(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
    float momentum, float eps, bool cudnn_enabled) -> Tensor"""
    if training or running_mean is None or running_var is None:
        axes = [0, *range(2, input.rank)]
        return _scaled(op, _standardised(op, input, axes, eps), weight, bias)
    if input.dtype == ir.DataType.DOUBLE:  # the operator's epsilon is of single precision
        root = op.Sqrt(op.Add(running_var, eps))
        factor = op.Reciprocal(root) if weight is None else op.Div(weight, root)
        return _scaled(op, _scaled(op, input, None, op.Neg(running_mean)), factor, bias)
    channels, dtype = running_mean.known_sizes, running_mean.element
    scale = _ones(op, channels, dtype) if weight is None else weight
    shift = _zeros(op, channels, dtype) if bias is None else bias
    return op.BatchNormalization(input, scale, shift, running_mean, running_var, epsilon=eps)


@op("aten::instance_norm")
def instance_norm(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,
    bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"""
    if not use_input_stats:
        return batch_norm(op, input, weight, bias, running_mean, running_var, False, momentum, eps)
    channels = input.known_sizes[1]
    if input.dtype != FLOAT:
        return _scaled(op, _standardised(op, input, range(2, input.rank), eps), weight, bias)
    scale = _ones(op, (channels,), FLOAT) if weight is None else weight
    shift = _zeros(op, (channels,), FLOAT) if bias is None else bias
    return op.InstanceNormalization(input, scale, shift, epsilon=eps)
