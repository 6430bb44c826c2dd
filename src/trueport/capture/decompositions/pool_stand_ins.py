"""Poolings whose kernel or result follows from a free size: torch takes plain numbers for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from trueport.capture.decompositions.resizing import by_traced_factor
from trueport.capture.decompositions.stand_ins import holds_symbol, stands_in_for
from trueport.capture.stops.cannot_be_carried import CannotBeCarried
from trueport.torch_internals.symbolic import expr_of


def _mean(rank: int) -> Callable[..., Any]:
    def pool(
        input: torch.Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> torch.Tensor:
        if _is_whole(input, kernel_size, rank) and not holds_symbol(padding) and padding == 0 and not divisor_override:
            return input.mean(tuple(range(-rank, 0)), keepdim=True)
        windows = _windows(input, rank, kernel_size, stride, padding, 1, ceil_mode)
        dtype = input.dtype
        total = input.float() if dtype in (torch.float16, torch.bfloat16) else input
        counts = total.new_ones(())
        for axis, of_axis in enumerate(windows, -rank):
            total = of_axis.laid_out(total, axis, blank=0).sum(axis)
            count = of_axis.reach if count_include_pad else of_axis.inside.sum(1)
            counts = counts.unsqueeze(-1) * count.to(total.dtype)
        return (total / (divisor_override or counts)).to(dtype)

    return pool


def _maximum(rank: int) -> Callable[..., Any]:
    def pool(
        input: torch.Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> torch.Tensor:
        if return_indices or not input.is_floating_point():
            raise CannotBeCarried(
                "the places of maxima, or maxima of integers, in windows whose length follows from a free size",
                "give the kernel as a number",
            )
        if _is_whole(input, kernel_size, rank) and not holds_symbol(padding) and padding == 0 and dilation == 1:
            return input.amax(tuple(range(-rank, 0)), keepdim=True)
        for axis, of_axis in enumerate(_windows(input, rank, kernel_size, stride, padding, dilation, ceil_mode), -rank):
            input = of_axis.laid_out(input, axis, blank=-math.inf).amax(axis)
        return input

    return pool


def _is_whole(input: torch.Tensor, kernel_size: Any, rank: int) -> bool:
    """Global pooling, written with a kernel that is the size of the picture."""
    kernel = _listed(kernel_size, rank)
    return all(_same_size(a, b) for a, b in zip(kernel, input.shape[-rank:], strict=True))


@dataclass(frozen=True)
class _Windows:
    """Windows over one axis: the indices [windows, kernel] of their elements, which of these are not padding, and how
    far each window reaches before the padding ends."""

    index: torch.Tensor
    inside: torch.Tensor
    reach: torch.Tensor

    def laid_out(self, tensor: torch.Tensor, axis: int, blank: float) -> torch.Tensor:
        """The windows of an axis, their elements on an axis of their own behind it; padding is `blank`."""
        found = _laid_out(tensor, axis, self.index)
        return found.masked_fill(~self.inside.reshape((*self.inside.shape, *[1] * (-axis - 1))), blank)


def _windows(
    input: torch.Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[_Windows]:
    if ceil_mode:
        raise CannotBeCarried(
            "ceil_mode with a kernel that follows from a free size", "give the kernel as a number, or pad explicitly"
        )
    settings = (_listed(each, rank) for each in (kernel_size, stride or kernel_size, padding, dilation))
    return [_along(*each) for each in zip(input.shape[-rank:], *settings, strict=True)]


def _along(length: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> _Windows:
    count = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    start = torch.arange(count) * stride - padding
    place = start.unsqueeze(1) + torch.arange(kernel) * dilation
    reach = (start + kernel).clamp(max=length + padding) - start
    return _Windows(place.clamp(0, length - 1), (place >= 0) & (place < length), reach)


_MEANS: tuple[Any, ...] = (torch.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
_MAXIMA: tuple[Any, ...] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
for _rank in (1, 2, 3):
    stands_in_for(_MEANS[_rank - 1])(_mean(_rank))
    stands_in_for(_MAXIMA[_rank - 1])(_maximum(_rank))


def _same_size(one: Any, other: Any) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return isinstance(one, torch.SymInt) and isinstance(other, torch.SymInt) and expr_of(one) == expr_of(other)


@stands_in_for(F.adaptive_avg_pool1d)
def _adaptive_mean_of_lines(input: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Of pictures, torch takes the result's size as it is: a line is a picture of one row."""
    length = output_size[0] if isinstance(output_size, (list, tuple)) else output_size
    return F.adaptive_avg_pool2d(input.unsqueeze(-2), (1, length)).squeeze(-2)


@stands_in_for(F.interpolate, reads_sizes=True)
def _interpolate(
    input: torch.Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **options: Any
) -> Any:
    """By areas, a line as a picture of one row, for the same reason; by a traced factor, place by place."""
    if holds_symbol(scale_factor):
        return by_traced_factor(input, scale_factor, mode, **options)
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
