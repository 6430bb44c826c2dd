"""Resizing an axis with antialiasing, as a product with a matrix of weights.

`Resize` has it too, and is used where it agrees with eager: not by a given scale, with aligned corners, or in float64.
"""

from __future__ import annotations

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.ops.layers.sampled import Axis, aligned_step, step_or_copy
from trueport.lower.tensor import Tensor

_CUBIC = -0.5
_REACH = {"linear": 1.0, "cubic": 2.0}
"""How many pixels of the coarser of the two images the filter reaches to either side."""


def antialiased(op: Builder, x: Tensor, axis: Axis, mode: str, align_corners: bool) -> Tensor:
    return weighted(op, x, axis, antialias_weights(op, axis, mode, align_corners, x.element))


def weighted(op: Builder, x: Tensor, axis: Axis, weights: Tensor) -> Tensor:
    """One of the last two axes of an image by weights [after, before]. ONNX Runtime takes an empty batch on the left
    side of a product only."""
    weights = op.Transpose(weights, perm=[1, 0])
    if axis.index == x.rank - 1:
        return op.MatMul(x, weights)
    return op.Transpose(op.MatMul(op.Transpose(x, perm=[0, 1, 3, 2]), weights), perm=[0, 1, 3, 2])


def antialias_weights(op: Builder, axis: Axis, mode: str, align_corners: bool, dtype: ir.DataType) -> Tensor:
    """[after, before]: the filter around each centre, over the pixels that it reaches, adding up to 1."""
    step = aligned_step(op, axis, dtype) if align_corners else step_or_copy(op, axis, dtype)
    width = op.Max(step, op.const(1, dtype))
    reach = op.Mul(width, _REACH[mode])
    centre = op.Unsqueeze(op.Mul(op.Add(op.cast(op.range(axis.after), dtype), 0.5), step), op.ints(1))
    pixel = op.cast(op.range(axis.before), dtype)
    first = op.Floor(op.Max(op.Add(op.Sub(centre, reach), 0.5), 0))
    last = op.Floor(op.Add(op.Add(centre, reach), 0.5))
    reached = op.And(op.GreaterOrEqual(pixel, first), op.Less(pixel, last))
    distance = op.Abs(op.Div(op.Add(op.Sub(pixel, centre), 0.5), width))
    height = _triangle(op, distance) if mode == "linear" else _cubic(op, distance)
    raw = op.Where(reached, height, op.const(0, dtype))
    return op.Div(raw, op.ReduceSum(raw, op.ints(1), keepdims=1))


def _triangle(op: Builder, distance: Tensor) -> Tensor:
    return op.Max(op.Sub(1, distance), 0)


def _cubic(op: Builder, d: Tensor) -> Tensor:
    near = op.Add(op.Mul(op.Mul(op.Sub(op.Mul(d, _CUBIC + 2), _CUBIC + 3), d), d), 1)
    far = op.Mul(op.Sub(op.Mul(op.Add(op.Mul(op.Sub(d, 5), d), 8), d), 4), _CUBIC)
    return op.Where(op.Less(d, 1), near, op.Where(op.Less(d, 2), far, op.const(0, d.element)))
