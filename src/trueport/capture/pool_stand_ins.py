"""Poolings whose kernel or result follows from a free size: torch takes plain numbers for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.capture.shapes import CannotBeCarried
from trueport.capture.stand_ins import holds_symbol, stands_in_for


def _of_the_whole(rank: int, reduce: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Global pooling, written with a kernel that is the size of the picture."""

    def pool(input: torch.Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> torch.Tensor:
        kernel, sizes = _listed(kernel_size, rank), input.shape[-rank:]
        same = all(_same_size(a, b) for a, b in zip(kernel, sizes, strict=True))
        plain = not any(v for v in (*rest, *options.values()) if v not in (0, True))
        if not (same and plain and (stride is None or holds_symbol(stride))):
            raise CannotBeCarried(
                "pooling with a kernel that follows from a free size, and is not the whole picture, is not carried",
                "give the kernel as a number, or declare the axes of the picture as one free size if they are equal",
            )
        return reduce(input, tuple(range(-rank, 0)))

    return pool


_MEANS: tuple[Any, ...] = (torch.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
_MAXIMA: tuple[Any, ...] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
for _rank in (1, 2, 3):
    stands_in_for(_MEANS[_rank - 1])(_of_the_whole(_rank, lambda x, axes: x.mean(axes, keepdim=True)))
    stands_in_for(_MAXIMA[_rank - 1])(_of_the_whole(_rank, lambda x, axes: x.amax(axes, keepdim=True)))


def _same_size(one: Any, other: Any) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return isinstance(one, torch.SymInt) and isinstance(other, torch.SymInt) and one.node.expr == other.node.expr


@stands_in_for(F.adaptive_avg_pool1d)
def _adaptive_mean_of_lines(input: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Of pictures, torch takes the result's size as it is: a line is a picture of one row."""
    length = output_size[0] if isinstance(output_size, (list, tuple)) else output_size
    return F.adaptive_avg_pool2d(input.unsqueeze(-2), (1, length)).squeeze(-2)


@stands_in_for(F.interpolate, reads_sizes=True)
def _interpolate(
    input: torch.Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **options: Any
) -> Any:
    """By areas, a line as a picture of one row, for the same reason."""
    if mode != "area" or input.dim() != 3:
        return NotImplemented
    row = None if size is None else (1, *_listed(size, 1))
    scales = None if scale_factor is None else (1.0, *_listed(scale_factor, 1))
    return F.interpolate(input.unsqueeze(-2), row, scales, mode, **options).squeeze(-2)


def _adaptive_maxima(rank: int, with_indices: bool) -> Callable[..., Any]:
    def pool(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        listed = _listed(output_size, rank)
        if all(isinstance(size, int) for size in listed):
            return NotImplemented
        sizes = [input.shape[axis - rank] if size is None else size for axis, size in enumerate(listed)]
        found = _windowed_max(input, sizes)
        return found if with_indices or return_indices else found[0]

    return pool


_ADAPTIVE: tuple[Any, ...] = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
_WITH_INDICES: tuple[Any, ...] = (
    F.adaptive_max_pool1d_with_indices,
    F.adaptive_max_pool2d_with_indices,
    F.adaptive_max_pool3d_with_indices,
)
for _rank in (1, 2, 3):
    stands_in_for(_ADAPTIVE[_rank - 1], reads_sizes=True)(_adaptive_maxima(_rank, with_indices=False))
    stands_in_for(_WITH_INDICES[_rank - 1], reads_sizes=True)(_adaptive_maxima(_rank, with_indices=True))


def _windowed_max(input: torch.Tensor, sizes: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest element of each window, and its place, counted through the pooled axes.

    One axis after the other, from the last: of equal elements the first one in memory wins, as in eager. A window has
    at most one element more than it would if all had the same length; a shorter row of the table repeats its last.
    """
    rank = len(sizes)
    whole = tuple(input.shape[-rank:])
    values, places = input, torch.arange(math.prod(whole)).view(whole).expand(input.shape)
    for axis in reversed(range(-rank, 0)):
        length, count = whole[axis], sizes[axis]
        if _same_size(length, count):
            continue
        number = torch.arange(count)
        start, end = number * length // count, ((number + 1) * length + count - 1) // count
        reach = torch.arange((length + count - 1) // count + 1)
        table = torch.minimum(start.unsqueeze(1) + reach, end.unsqueeze(1) - 1)
        laid_out, at = (_laid_out(each, axis, table) for each in (values, places))
        best = laid_out.argmax(axis, keepdim=True)
        values, places = (each.gather(axis, best).squeeze(axis) for each in (laid_out, at))
    return values, places


def _laid_out(tensor: torch.Tensor, axis: int, table: torch.Tensor) -> torch.Tensor:
    """The elements that a table of indices [windows, longest] names along an axis, on two axes."""
    taken = tensor.index_select(axis, table.flatten())
    shape = taken.shape
    at = axis % len(shape)
    return taken.reshape((*shape[:at], *table.shape, *shape[at + 1 :]))


def _listed(sizes: Any, count: int) -> list[Any]:
    return list(sizes) if isinstance(sizes, (list, tuple)) else [sizes] * count
