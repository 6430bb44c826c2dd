"""`F.interpolate` by a factor that is traced: torch takes a plain number there.

The pixels of each axis are taken by their places, which torch computes in float32: from the factor itself, or, where
it is told to, from the sizes before and after.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from trueport.capture.stops.cannot_be_carried import CannotBeCarried

_SMOOTH = ("linear", "bilinear", "trilinear")
_SHARPNESS = -0.75
"""The coefficient of torch's bicubic kernel."""


def by_traced_factor(
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
            "use mode='bilinear' or 'nearest', or list the factor in constants=",
        )
    factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * (input.dim() - 2)
    for axis, factor in enumerate(factors, 2):
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
