"""Resampling an axis by index, with eager's own coordinates: what ONNX's `Resize` cannot say, or says otherwise.

`Resize` takes float32 scales, from which it computes the sizes and, for `nearest`, picks pixels by another division
than eager; and it has no float64. Here the coordinates are computed as eager computes them, and `Gather` takes the
elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.tensor import Tensor

_CUBIC = -0.75
_CHECKED = 1 << 16


@dataclass(frozen=True)
class Axis:
    """An axis to be resampled. `scale` is what the user gave (2.0 makes it twice as long), if it counts."""

    index: int
    before: Size
    after: Size
    scale: float | None = None


def pixel_step(op: Builder, axis: Axis, dtype: ir.DataType) -> Tensor:
    """How far apart two pixels of the result lie in the input."""
    if axis.scale is not None:
        return op.const(1.0 / axis.scale, dtype)
    return op.Div(op.cast(op.size(axis.before), dtype), op.cast(op.size(axis.after), dtype))


def aligned_step(op: Builder, axis: Axis, dtype: ir.DataType) -> Tensor:
    """The same where the first and the last pixel stay where they are; none where there is one."""
    if axis.after == 1:
        return op.const(0, dtype)
    gaps = op.cast(op.size(axis.before - 1), dtype)
    step = op.Div(gaps, op.cast(op.Max(op.size(axis.after - 1), 1), dtype))
    if isinstance(axis.after, int):
        return step
    return op.Where(op.Equal(op.size(axis.after), 1), op.const(0, dtype), step)


def step_or_copy(op: Builder, axis: Axis, dtype: ir.DataType) -> Tensor:
    """The step where eager copies an axis that a scale leaves as long as it was: 5 pixels by 1.1."""
    step = pixel_step(op, axis, dtype)
    if axis.scale is None or axis.scale < 1 or axis.scale >= 2:
        return step
    return op.Where(op.Equal(op.size(axis.before), op.size(axis.after)), op.const(1, dtype), step)


def nearest(op: Builder, x: Tensor, axis: Axis, centred: bool, whole: Tensor | bool) -> Tensor:
    """The pixel at `floor(i * step)`, or `floor((i + 0.5) * step)` where centres count. `whole`: an axis that a scale
    leaves as long as it was, or makes twice as long, is copied, or each of its pixels doubled."""
    dtype = _coordinates_in(x)
    place, step = op.cast(op.range(axis.after), dtype), pixel_step(op, axis, dtype)
    if centred:
        place = op.Add(place, 0.5)
    elif whole is not False and axis.scale is not None and 1 <= axis.scale < 3:
        times = int(axis.scale)
        exact = op.Equal(op.Mul(op.size(axis.before), times), op.size(axis.after))
        exact = exact if whole is True else op.And(exact, whole)
        step = op.Where(exact, op.const(1 / times, dtype), step)
    return _take(op, x, axis, op.Floor(op.Mul(place, step)))


def repeats_exactly(times: int) -> bool:
    """Whether eager's nearest pixel is `i // times` for every i; a product with a rounded 1 / times may fall short."""
    place = np.arange(_CHECKED, dtype=np.float32)
    return bool((np.floor(place * np.float32(1.0 / times)) == np.arange(_CHECKED) // times).all())


def linear(op: Builder, x: Tensor, axis: Axis, align_corners: bool) -> Tensor:
    """Between the two pixels around the coordinate; before the first pixel and after the last, these."""
    place = op.Max(_coordinate(op, _coordinates_in(x), axis, align_corners, step_or_copy), 0)
    left = op.Floor(place)
    share = _along(op, x, axis, op.Sub(place, left))
    here, there = _take(op, x, axis, left), _take(op, x, axis, op.Add(left, 1))
    return op.Add(here, op.Mul(op.Sub(there, here), share))


def around(op: Builder, axis: Axis, mode: str, align_corners: bool, dtype: ir.DataType) -> list[tuple[Tensor, Tensor]]:
    """The pixels around each coordinate, and their weights."""
    place = _coordinate(op, dtype, axis, align_corners, step_or_copy)
    if mode == "linear":
        place = op.Max(place, 0)
    left = op.Floor(place)
    share = op.Sub(place, left)
    weights = [op.Sub(1, share), share] if mode == "linear" else _cubic_weights(op, share)
    first = 0 if mode == "linear" else -1
    return [(_inside(op, axis, op.Add(left, float(at))), weight) for at, weight in enumerate(weights, start=first)]


def cubic(op: Builder, x: Tensor, axis: Axis, align_corners: bool) -> Tensor:
    """Through the four pixels around the coordinate; those outside are the nearest ones inside."""
    place = _coordinate(op, _coordinates_in(x), axis, align_corners, pixel_step)
    left = op.Floor(place)
    share = op.Sub(place, left)
    parts = []
    for offset, weight in enumerate(_cubic_weights(op, share), start=-1):
        parts.append(op.Mul(_take(op, x, axis, op.Add(left, offset)), _along(op, x, axis, weight)))
    return op.Add(op.Add(parts[0], parts[1]), op.Add(parts[2], parts[3]))


def _cubic_weights(op: Builder, t: Tensor) -> list[Tensor]:
    def near(d: Tensor) -> Tensor:
        return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(d, _CUBIC + 2), _CUBIC + 3), d), d), 1)

    def far(d: Tensor) -> Tensor:
        inner = op.Add(op.Mul(op.Sub(op.Mul(d, _CUBIC), 5 * _CUBIC), d), 8 * _CUBIC)
        return op.Sub(op.Mul(inner, d), 4 * _CUBIC)

    rest = op.Sub(1, t)
    return [far(op.Add(t, 1)), near(t), near(rest), far(op.Add(rest, 1))]


def _coordinate(
    op: Builder, dtype: ir.DataType, axis: Axis, align_corners: bool, step: Callable[..., Tensor]
) -> Tensor:
    place = op.cast(op.range(axis.after), dtype)
    if align_corners:
        return op.Mul(place, aligned_step(op, axis, dtype))
    return op.Sub(op.Mul(op.Add(place, 0.5), step(op, axis, dtype)), 0.5)


def _coordinates_in(x: Tensor) -> ir.DataType:
    return ir.DataType.DOUBLE if x.dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT


def _take(op: Builder, x: Tensor, axis: Axis, place: Tensor) -> Tensor:
    return op.Gather(x, _inside(op, axis, place), axis=axis.index)


def _inside(op: Builder, axis: Axis, place: Tensor) -> Tensor:
    return op.Max(op.Min(op.cast(place, ir.DataType.INT64), op.size(axis.before - 1)), 0)


def _along(op: Builder, x: Tensor, axis: Axis, weight: Tensor) -> Tensor:
    """A weight per pixel of the axis, so that it broadcasts over the axes behind it."""
    behind = x.rank - axis.index - 1
    return op.cast(op.Unsqueeze(weight, op.ints(*range(1, behind + 1))) if behind else weight, x.element)
