"""Pictures resized and sampled: `F.interpolate` by a traced factor, and the sizes that resizing and sampling give.

Torch takes a plain number as a factor. By a traced one, the pixels of each axis are taken by their places, which torch
computes in float32: from the factor itself, or, where it is told to, from the sizes before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.pooling import each_axis
from trueport.decompositions.registry import decomposes, free_size, holds_symbol, sizes_of
from trueport.diagnostics.spelling import option, told

aten = torch.ops.aten
Sizes = Sequence[Any]
_SMOOTH = ("linear", "bilinear", "trilinear")
_SHARPNESS = -0.75
"""The coefficient of torch's bicubic kernel."""


@decomposes(F.interpolate, when=free_size)
def _interpolate(
    input: torch.Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **options: Any
) -> Any:
    """By areas, a line is a picture of one row, as in `pooling`; by a traced factor, place by place."""
    if holds_symbol(scale_factor):
        return _by_traced_factor(input, scale_factor, mode, **options)
    if mode != "area" or input.dim() != 3:
        return NotImplemented
    row = None if size is None else (1, *each_axis(size, 1))
    scales = None if scale_factor is None else (1.0, *each_axis(scale_factor, 1))
    return F.interpolate(input.unsqueeze(-2), row, scales, mode, **options).squeeze(-2)


def _by_traced_factor(
    input: torch.Tensor,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    if antialias or mode not in ("nearest", "nearest-exact", "bicubic", *_SMOOTH):
        how = "antialias=True" if antialias else f"mode={mode!r}"
        raise CannotBeCarried(
            f"interpolate({how}) by a factor that is known only when the model runs",
            told("use mode='bilinear' or 'nearest', or fix the factor: ", option("constants", ...)),
        )
    for axis, factor in enumerate(each_axis(scale_factor, input.dim() - 2), 2):
        length: Any = torch.sym_max(math.floor(input.shape[axis] * factor), 0)
        before, after = (torch.full((), n, dtype=torch.float32) for n in (input.shape[axis], length))
        if align_corners:
            step = (before - 1) / (after - 1).clamp(min=1)
        elif recompute_scale_factor:
            step = before / after
        else:
            step = (1.0 / torch.full((), torch.sym_float(factor), dtype=torch.float64)).to(torch.float32)
        number = torch.arange(length).to(torch.float32)
        input = _along(input, axis, number, step, mode, bool(align_corners))
    return input


def _along(
    x: torch.Tensor, axis: int, number: torch.Tensor, step: torch.Tensor, mode: str, corners: bool
) -> torch.Tensor:
    """The pixels with these numbers along one axis, of which the next is `step` further in the input."""
    last = x.shape[axis] - 1
    if mode == "bicubic":
        return _cubic(x, axis, step * number if corners else step * (number + 0.5) - 0.5)
    if mode not in _SMOOTH:
        middle = number + 0.5 if mode == "nearest-exact" else number
        return x.index_select(axis, (middle * step).floor().to(torch.int64).clamp(max=last))
    place = step * number if corners else (step * (number + 0.5) - 0.5).clamp(min=0)
    low = place.floor().to(torch.int64).clamp(max=last)
    share = (place - low.to(torch.float32)).clamp(max=1).to(x.dtype)
    share = share.reshape(-1, *[1] * (x.dim() - axis - 1))
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, (low + 1).clamp(max=last)) * share


def _cubic(x: torch.Tensor, axis: int, place: torch.Tensor) -> torch.Tensor:
    """Of the four pixels around a place; beyond the edge, the last one again."""
    low = place.floor()
    made: Any = 0.0
    for offset in (-1, 0, 1, 2):
        pixel = (low + offset).to(torch.int64).clamp(0, x.shape[axis] - 1)
        away = (place - low - offset).abs()
        near = ((_SHARPNESS + 2) * away - (_SHARPNESS + 3)) * away * away + 1
        far = ((_SHARPNESS * away - 5 * _SHARPNESS) * away + 8 * _SHARPNESS) * away - 4 * _SHARPNESS
        share = torch.where(away <= 1, near, far).to(x.dtype)
        made = made + x.index_select(axis, pixel) * share.reshape(-1, *[1] * (x.dim() - axis - 1))
    return made  # type: ignore[no-any-return]


def _scaled(length: Any, scale: float) -> Any:
    return length * int(scale) if float(scale).is_integer() else torch.sym_int(length * scale)


def _resized(x: torch.Tensor, output_size: Sizes | None, scales: Sequence[float] | None) -> torch.Tensor:
    lengths = output_size or [_scaled(*of_axis) for of_axis in zip(x.shape[2:], scales or (), strict=True)]
    return x.new_empty((*x.shape[:2], *lengths))


@sizes_of(
    *(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec),
    *(aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec),
    *(aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec),
    *(aten.upsample_bicubic2d.vec, aten._upsample_bilinear2d_aa.vec, aten._upsample_bicubic2d_aa.vec),
)
def _to_size_or_by_factors(input: torch.Tensor, output_size: Sizes | None, *settings: Any) -> torch.Tensor:
    """The smooth ones are told about corners before the factors."""
    return _resized(input, output_size, settings[-1])


@sizes_of(aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default)
def _to_size(self: torch.Tensor, output_size: Sizes, *_settings: Any) -> torch.Tensor:
    return _resized(self, output_size, None)


@sizes_of(aten.grid_sampler.default)
def _grid_sampler(input: torch.Tensor, grid: torch.Tensor, *_settings: Any) -> torch.Tensor:
    return input.new_empty((*input.shape[:2], *grid.shape[1:-1]))


@sizes_of(aten.affine_grid_generator.default)
def _affine_grid(theta: torch.Tensor, size: Sizes, align_corners: bool) -> torch.Tensor:
    batch, _channels, *lengths = size
    return theta.new_empty((batch, *lengths, len(lengths)))
