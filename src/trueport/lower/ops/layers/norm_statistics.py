"""Normalisations that also give the mean and the deviation they used: for the backward pass, or for running averages.

The statistics are computed only where something reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import count
from trueport.lower.ops.create import filled
from trueport.lower.ops.layers.norm import HALVES, batch_norm, group_norm, layer_norm
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Sizes = Sequence[int | Number]
Results = Sequence[Tensor | None]


def _moments(op: Builder, x: Tensor, axes: Sequence[int], keepdims: bool) -> tuple[Tensor, Tensor]:
    """Mean and variance over the axes; in single precision at least."""
    wide = op.cast(x, ir.DataType.FLOAT) if x.dtype in HALVES else x
    middle = op.ReduceMean(wide, op.ints(*axes), keepdims=1)
    apart = op.Sub(wide, middle)
    variance = op.ReduceMean(op.Mul(apart, apart), op.ints(*axes), keepdims=int(keepdims))
    return middle if keepdims else op.Squeeze(middle, op.ints(*axes)), variance


def _inverse_deviation(op: Builder, variance: Tensor, eps: float) -> Tensor:
    return op.Reciprocal(op.Sqrt(op.Add(variance, eps)))


@op("aten::native_layer_norm")
def native_layer_norm(
    op: Builder, input: Tensor, normalized_shape: Sizes, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Results:
    """native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)
    -> (Tensor, Tensor, Tensor)"""
    out = layer_norm(op, input, normalized_shape, weight, bias, eps)
    if not op.wants(1, 2):
        return out, None, None
    middle, variance = _moments(op, input, range(input.rank - len(normalized_shape), input.rank), True)
    return out, middle, _inverse_deviation(op, variance, eps)


@op("aten::native_group_norm")
def native_group_norm(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int | Number,
    C: int | Number,
    HxW: int | Number,
    group: int,
    eps: float,
) -> Results:
    """native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group,
    float eps) -> (Tensor, Tensor, Tensor)"""
    out = group_norm(op, input, group, weight, bias, eps)
    if not op.wants(1, 2):
        return out, None, None
    batch, channels, *rest = input.known_sizes
    groups = op.reshape(input, (batch, group, channels // group * count(rest)))
    middle, variance = _moments(op, groups, [2], False)
    return out, middle, _inverse_deviation(op, variance, eps)


@op("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_inference(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Results:
    """_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,
    Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)"""
    return _with_statistics(op, input, weight, bias, running_mean, running_var, False, momentum, eps)[:3]


@op("aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_functional")
def native_batch_norm(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    """native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,
    bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor); the functional form also gives the new
    running averages"""
    return _with_statistics(op, input, weight, bias, running_mean, running_var, training, momentum, eps)


@op("aten::_native_batch_norm_legit.no_stats")
def native_batch_norm_no_stats(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    """_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum,
    float eps) -> (Tensor, Tensor, Tensor)"""
    return _with_statistics(op, input, weight, bias, None, None, True, momentum, eps)[:3]


def _with_statistics(
    op: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    """(result, mean, inverse deviation, new running mean, new running variance).

    Out of training, eager gives nothing for the statistics: tensors of no elements.
    """
    out = batch_norm(op, input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not op.wants(1, 2, 3, 4):
        return out, None, None, None, None
    if not training:
        nothing = filled(op, (0,), 0, torch.float32)
        return out, nothing, nothing, running_mean, running_var
    axes = [0, *range(2, input.rank)]
    middle, variance = _moments(op, input, axes, False)
    number = op.scalar(_size(count([input.known_sizes[axis] for axis in axes])), variance.element)
    unbiased = op.Div(op.Mul(variance, number), op.Sub(number, 1))
    return (
        out,
        middle,
        _inverse_deviation(op, variance, eps),
        _moved(op, running_mean, middle, momentum),
        _moved(op, running_var, unbiased, momentum),
    )


def _size(size: Size) -> int | Number:
    return size if isinstance(size, int) else Number(size, int)


def _moved(op: Builder, before: Tensor | None, now: Tensor, momentum: float) -> Tensor | None:
    if before is None:
        return None
    return op.Add(op.Mul(before, 1 - momentum), op.Mul(op.cast(now, before.element), momentum))
