"""Resizing images: nearest, linear and cubic, with or without antialiasing, in one to three axes.

`Resize` is used where it is sure to do what eager does; otherwise `sampled` takes the pixels one axis at a time.

1. `nearest`: where each pixel is repeated a whole number of times.
2. `linear` and `cubic`: where the coordinates follow from the sizes (no scale was given, or a whole one, or corners are
   aligned), or from a scale that is exact in float32 and changes every size; bytes never (`resize_bytes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.ops.layers import sampled
from trueport.lower.ops.layers.antialias import antialiased
from trueport.lower.ops.layers.resize_bytes import resized_bytes
from trueport.lower.ops.layers.sampled import Axis
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Sizes = Sequence[int | Number] | None
Scales = Sequence[float | None] | None

_SMALL_IMAGE = 128
"""Height and width, together."""
_ANTIALIAS_SINCE = 18
_RUNTIME_RESIZES = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16))


def _register_nearest(rank: int, name: str, centred: bool) -> None:
    @op(f"aten::{name}{rank}d.vec")
    def with_factors(op: Builder, input: Tensor, output_size: Sizes, scale_factors: Scales) -> Tensor:
        """upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"""
        return _nearest(op, input, _axes(op, rank, scale_factors), centred)

    @op(f"aten::{name}{rank}d")
    def with_scales(op: Builder, self: Tensor, output_size: Sizes, *scales: float | None) -> Tensor:
        """upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None)"""
        return _nearest(op, self, _axes(op, rank, scales), centred)


def _register_smooth(rank: int, name: str, mode: str, antialias: bool = False) -> None:
    @op(f"aten::{name}.vec")
    def with_factors(
        op: Builder, input: Tensor, output_size: Sizes, align_corners: bool, scale_factors: Scales
    ) -> Tensor:
        """upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners,
        float[]? scale_factors) -> Tensor
        """
        return _smooth(op, input, rank, scale_factors, mode, align_corners, antialias)

    @op(f"aten::{name}")
    def with_scales(
        op: Builder, self: Tensor, output_size: Sizes, align_corners: bool, *scales: float | None
    ) -> Tensor:
        """upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None,
        float? scales_w=None) -> Tensor
        """
        return _smooth(op, self, rank, scales, mode, align_corners, antialias)


for _rank in (1, 2, 3):
    _register_nearest(_rank, "upsample_nearest", centred=False)
    _register_nearest(_rank, "_upsample_nearest_exact", centred=True)
_register_smooth(1, "upsample_linear1d", "linear")
_register_smooth(2, "upsample_bilinear2d", "linear")
_register_smooth(3, "upsample_trilinear3d", "linear")
_register_smooth(2, "upsample_bicubic2d", "cubic")
_register_smooth(2, "_upsample_bilinear2d_aa", "linear", antialias=True)
_register_smooth(2, "_upsample_bicubic2d_aa", "cubic", antialias=True)


def _axes(op: Builder, rank: int, scales: Scales) -> list[Axis]:
    before, after = _input_sizes(op), op.result.shape
    given = [None] * rank if not scales else [scale or None for scale in scales]
    return [Axis(2 + i, before[2 + i], after[2 + i], given[i]) for i in range(rank)]


def _input_sizes(op: Builder) -> tuple[Size, ...]:
    assert op.node is not None
    sizes: tuple[Size, ...] = op.node.args[0].shape
    return sizes


def _nearest(op: Builder, x: Tensor, axes: Sequence[Axis], centred: bool) -> Tensor:
    times = [_times(axis) for axis in axes]
    if x.dtype in _RUNTIME_RESIZES and all(n is not None and sampled.repeats_exactly(n) for n in times):
        return _resize(
            op,
            x,
            axes,
            scales=[float(n or 1) for n in times],
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )
    whole = len(axes) == 2 and _is_small(op, axes)
    return _each_axis(x, axes, lambda x, axis: sampled.nearest(op, x, axis, centred, whole))


def _is_small(op: Builder, axes: Sequence[Axis]) -> Tensor | bool:
    """Eager has a kernel of its own for small images, and for channels in the last place, which we do not see."""
    total = sympy.Add(*(axis.after for axis in axes))
    if total.is_Integer:
        return bool(total <= _SMALL_IMAGE)
    return op.LessOrEqual(op.size(total), _SMALL_IMAGE)


def _smooth(
    op: Builder, x: Tensor, rank: int, scales: Scales, mode: str, align_corners: bool, antialias: bool
) -> Tensor:
    dtype = x.element
    inner = dtype if dtype in _RUNTIME_RESIZES or dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
    axes = _axes(op, rank, None if align_corners else scales)
    if dtype == ir.DataType.UINT8:
        return resized_bytes(op, x, axes, mode, align_corners, antialias)
    x = op.cast(x, inner)
    options: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel",
        "cubic_coeff_a": {"linear": None, "cubic": -0.5 if antialias else -0.75}[mode],
    }
    if antialias:
        options |= {"antialias": 1, "exclude_outside": 1}
    if (
        inner in _RUNTIME_RESIZES
        and all(axis.scale is None or _times(axis) for axis in axes)
        and not (antialias and (align_corners or op.opset < _ANTIALIAS_SINCE))
    ):
        out = _resize(op, x, axes, **options)
    elif antialias:
        out = _each_axis(x, axes, lambda x, axis: antialiased(op, x, axis, mode, align_corners))
    elif inner in _RUNTIME_RESIZES and all(_is_safe(axis.scale) for axis in axes):
        out = _resize(op, x, axes, scales=[axis.scale or 1.0 for axis in axes], **options)
    else:
        sample = sampled.linear if mode == "linear" else sampled.cubic
        out = _each_axis(x, axes, lambda x, axis: sample(op, x, axis, align_corners))
    return op.cast(out, dtype)


def _each_axis(x: Tensor, axes: Sequence[Axis], resample: Callable[[Tensor, Axis], Tensor]) -> Tensor:
    for axis in axes:
        sizes = x.known_sizes
        x = resample(x, axis)
        x.sizes = (*sizes[: axis.index], axis.after, *sizes[axis.index + 1 :])
    return x


def _times(axis: Axis) -> int | None:
    """How many times longer the axis becomes, where that is a whole number for every size."""
    times = (
        sympy.sympify(axis.after) / sympy.sympify(axis.before) if axis.scale is None else sympy.nsimplify(axis.scale)
    )
    return int(times) if times.is_Integer and times > 0 else None


def _is_safe(scale: float | None) -> bool:
    """A scale that `Resize` sees as given, and that it does not take for "nothing to do"."""
    return scale is not None and float(np.float32(scale)) == scale and (scale >= 1.5 or scale < 1)


def _resize(
    op: Builder, x: Tensor, axes: Sequence[Axis], scales: Sequence[float] | None = None, **options: Any
) -> Tensor:
    """All axes are named, those that stay as they are too: where the runtime's optimiser moves a transposition behind a
    `Resize` that names only some (`axes`, since opset 18), the model does not load.

    It does so for `cubic` as well, though its kernel has no such layout; no transposition comes past a `Reshape`.
    """
    lead, after = axes[0].index, tuple(op.result.shape)
    if options["mode"] == "cubic":
        before = _input_sizes(op)
        together = (1, sympy.Mul(*before[:lead]))
        x = op.reshape(x, (*together, *before[lead:]))
        return op.reshape(_resized(op, x, (*together, *after[lead:]), scales, **options), after)
    return _resized(op, x, after, scales, **options)


def _resized(op: Builder, x: Tensor, sizes: Sequence[Size], scales: Sequence[float] | None, **options: Any) -> Tensor:
    if scales is None:
        return op.Resize(x, None, None, op.shape(sizes), **options)
    return op.Resize(x, None, op.const([1.0] * (len(sizes) - len(scales)) + [*scales], ir.DataType.FLOAT), **options)
