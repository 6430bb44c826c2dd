"""Resizing images of bytes as eager does: an axis at a time, the last first, each result rounded to bytes again.

Eager's weights are whole numbers of 15 bits here, and so its results are not those of floats rounded. Everything is
exact in float64: a byte times a weight, added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.ops.layers.antialias import antialias_weights, weighted
from trueport.lower.ops.layers.sampled import Axis, around
from trueport.lower.tensor import Tensor

DOUBLE = ir.DataType.DOUBLE
_WEIGHT = 1 << 15
_MOST_BITS = 22
"""Behind the point of a weight."""


def resized_bytes(
    op: Builder, x: Tensor, axes: Sequence[Axis], mode: str, align_corners: bool, antialias: bool
) -> Tensor:
    """An axis that keeps its size is copied."""
    found = op.cast(x, DOUBLE)
    for axis in reversed(axes):
        if axis.before != axis.after:
            weights = antialias_weights if antialias else _weights
            exact, unit = _whole(op, weights(op, axis, mode, align_corners, DOUBLE))
            total = op.Add(weighted(op, found, axis, exact), op.Mul(unit, 0.5))
            sizes = found.known_sizes
            found = op.Clip(op.Floor(op.Div(total, unit)), 0.0, 255.0)
            found.sizes = (*sizes[: axis.index], axis.after, *sizes[axis.index + 1 :])
    return op.cast(found, x.element)


def _whole(op: Builder, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The weights as whole numbers, with as many bits as the largest leaves room for, and what is 1 among them."""
    units = op.const([2.0**bits for bits in range(1, _MOST_BITS + 1)], DOUBLE)
    largest = op.Floor(op.Add(op.Mul(op.ReduceMax(weights, keepdims=0), units), 0.5))
    unit = op.ReduceMax(op.Where(op.Less(largest, float(_WEIGHT)), units, op.const(1.0, DOUBLE)), keepdims=0)
    scaled = op.Mul(weights, unit)
    return op.Where(op.Less(scaled, 0), op.Ceil(op.Sub(scaled, 0.5)), op.Floor(op.Add(scaled, 0.5))), unit


def _weights(op: Builder, axis: Axis, mode: str, align_corners: bool, dtype: ir.DataType) -> Tensor:
    """[after, before]: those of the two or four pixels around each coordinate; those outside are the nearest inside."""
    pixel = op.range(axis.before)
    parts = [
        op.Where(op.Equal(op.Unsqueeze(place, op.ints(1)), pixel), op.Unsqueeze(weight, op.ints(1)), op.const(0, dtype))
        for place, weight in around(op, axis, mode, align_corners, dtype)
    ]
    return reduce(op.Add, parts)
