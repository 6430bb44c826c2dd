"""`torch.gradient`: differences of neighbours, which torch cuts out of the tensor by plain sizes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from trueport.decompositions.arguments import flat
from trueport.decompositions.indexing import cut
from trueport.decompositions.registry import decomposes

aten = torch.ops.aten


@decomposes(
    *(aten.gradient.scalarint, aten.gradient.scalararray, aten.gradient.array, aten.gradient.scalarrayint),
    *(aten.gradient.scalarrayarray, aten.gradient.tensorarrayint, aten.gradient.tensorarray),
)
def _gradient(
    tensor: torch.Tensor, *, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> list[torch.Tensor]:
    """gradient(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]

    `spacing` is a distance, one for each axis, or for each axis the places of its elements.
    """
    axes = list(range(tensor.dim()) if dim is None else flat(dim))
    apart = list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(axes)
    return [_along(tensor, axis, distance, edge_order) for axis, distance in zip(axes, apart, strict=True)]


def _along(tensor: torch.Tensor, axis: int, distance: Any, edge_order: int) -> torch.Tensor:
    places = distance if isinstance(distance, torch.Tensor) and distance.dim() else None
    parts = (
        _by_step(tensor, axis, distance, edge_order) if places is None else _by_place(tensor, axis, places, edge_order)
    )
    return torch.cat(parts, axis)


def _by_step(tensor: torch.Tensor, axis: int, step: Any, edge_order: int) -> list[torch.Tensor]:
    at = functools.partial(cut, tensor, axis)
    inner = (at(2, None) - at(0, -2)) / step / 2
    if edge_order == 1:
        return [(at(1, 2) - at(0, 1)) / step, inner, (at(-1, None) - at(-2, -1)) / step]
    first = (-1.5 * at(0, 1) + 2 * at(1, 2) - 0.5 * at(2, 3)) / step
    last = (0.5 * at(-3, -2) - 2 * at(-2, -1) + 1.5 * at(-1, None)) / step
    return [first, inner, last]


def _by_place(tensor: torch.Tensor, axis: int, places: torch.Tensor, edge_order: int) -> list[torch.Tensor]:
    at = functools.partial(cut, tensor, axis)
    lengths = [1] * tensor.dim()
    lengths[axis] = -1
    steps = places.diff()
    before, after = steps[:-1].reshape(lengths), steps[1:].reshape(lengths)
    both = before + after
    a, b, c = -after / (before * both), (after - before) / (before * after), before / (after * both)
    inner = a * at(0, -2) + b * at(1, -1) + c * at(2, None)
    if edge_order == 1:
        return [(at(1, 2) - at(0, 1)) / steps[0], inner, (at(-1, None) - at(-2, -1)) / steps[-1]]
    one, two = steps[0], steps[1]
    a, b, c = -(2 * one + two) / (one * (one + two)), (one + two) / (one * two), -one / (two * (one + two))
    first = a * at(0, 1) + b * at(1, 2) + c * at(2, 3)
    one, two = steps[-2], steps[-1]
    a, b, c = two / (one * (one + two)), -(one + two) / (one * two), (2 * two + one) / (two * (one + two))
    last = a * at(-3, -2) + b * at(-2, -1) + c * at(-1, None)
    return [first, inner, last]
