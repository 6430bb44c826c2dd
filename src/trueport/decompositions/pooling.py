"""Poolings: those whose kernel or result follows from a free size, those at fractions, and what they all give.

Torch takes plain numbers for kernel and result, and tells the sizes of the result by decompositions that decide by
sizes (is the input empty?) and take seconds where sizes are symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.arguments import flat
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.registry import decomposes, free_size, holds_symbol, sizes_of
from trueport.torch_internals.symbolic import same_number

aten = torch.ops.aten


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
    kernel = each_axis(kernel_size, rank)
    return all(same_number(a, b) for a, b in zip(kernel, input.shape[-rank:], strict=True))


@dataclass(frozen=True)
class _Windows:
    """Windows over one axis: the indices [windows, kernel] of their elements, which of these are not padding, and how
    far each window reaches before the padding ends."""

    index: torch.Tensor
    inside: torch.Tensor
    reach: torch.Tensor

    def laid_out(self, tensor: torch.Tensor, axis: int, blank: float) -> torch.Tensor:
        """The windows of an axis, their elements on an axis of their own behind it; padding is `blank`."""
        found = laid_out(tensor, axis, self.index)
        return found.masked_fill(~self.inside.reshape((*self.inside.shape, *[1] * (-axis - 1))), blank)


def _windows(
    input: torch.Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[_Windows]:
    if ceil_mode:
        raise CannotBeCarried(
            "ceil_mode with a kernel that follows from a free size", "give the kernel as a number, or pad explicitly"
        )
    settings = (each_axis(each, rank) for each in (kernel_size, stride or kernel_size, padding, dilation))
    return [_along(*each) for each in zip(input.shape[-rank:], *settings, strict=True)]


def _along(length: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> _Windows:
    count = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    start = torch.arange(count) * stride - padding
    place = start.unsqueeze(1) + torch.arange(kernel) * dilation
    reach = (start + kernel).clamp(max=length + padding) - start
    return _Windows(place.clamp(0, length - 1), (place >= 0) & (place < length), reach)


@decomposes(F.adaptive_avg_pool1d)
def _adaptive_mean_of_lines(input: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Of pictures, torch takes the result's size as it is: a line is a picture of one row."""
    return F.adaptive_avg_pool2d(input.unsqueeze(-2), (1, *each_axis(output_size, 1))).squeeze(-2)


def _adaptive_maxima(rank: int, with_indices: bool) -> Callable[..., Any]:
    def pool(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        wanted = each_axis(output_size, rank)
        if all(isinstance(size, int) for size in wanted):
            return NotImplemented
        sizes = [input.shape[axis - rank] if size is None else size for axis, size in enumerate(wanted)]
        found = _windowed_max(input, sizes)
        return found if with_indices or return_indices else found[0]

    return pool


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
        if same_number(length, count):
            continue
        number = torch.arange(count)
        start, end = number * length // count, ((number + 1) * length + count - 1) // count
        reach = torch.arange((length + count - 1) // count + 1)
        table = torch.minimum(start.unsqueeze(1) + reach, end.unsqueeze(1) - 1)
        windows, at = (laid_out(each, axis, table) for each in (values, places))
        best = windows.argmax(axis, keepdim=True)
        values, places = (each.gather(axis, best).squeeze(axis) for each in (windows, at))
    return values, places


def laid_out(tensor: torch.Tensor, axis: int, table: torch.Tensor) -> torch.Tensor:
    """The elements that a table of indices [windows, longest] names along an axis, on two axes."""
    taken = tensor.index_select(axis, table.flatten())
    shape = taken.shape
    at = axis % len(shape)
    return taken.reshape((*shape[:at], *table.shape, *shape[at + 1 :]))


def each_axis(value: Any, rank: int) -> list[Any]:
    """Torch takes one number for all axes."""
    given = list(flat(value))
    return given * rank if len(given) == 1 else given


for _rank in (1, 2, 3):
    decomposes(torch.avg_pool1d if _rank == 1 else getattr(F, f"avg_pool{_rank}d"))(_mean(_rank))
    decomposes(getattr(F, f"max_pool{_rank}d"))(_maximum(_rank))
    for _indices in (False, True):
        _function = getattr(F, f"adaptive_max_pool{_rank}d{'_with_indices' if _indices else ''}")
        decomposes(_function, when=free_size)(_adaptive_maxima(_rank, with_indices=_indices))


@decomposes(aten.max_pool2d_with_indices_backward.default)
def _max_pool2d_backward(
    grad_output: torch.Tensor,
    tensor: torch.Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: torch.Tensor,
) -> torch.Tensor:
    """To each place what comes from the windows whose largest value it is. Up to 2.11, torch has no decomposition."""
    dtype = grad_output.dtype
    given = (grad_output.float() if dtype in (torch.float16, torch.bfloat16) else grad_output).flatten(-2)
    total = given.new_zeros((*tensor.shape[:-2], tensor.shape[-2] * tensor.shape[-1]))
    return total.scatter_add(-1, indices.flatten(-2), given).reshape(tensor.shape).to(dtype)


@decomposes(aten.fractional_max_pool2d.default)
def _fractional_max_pool2d(tensor: torch.Tensor, kernel_size: Any, output_size: Any, samples: torch.Tensor) -> Any:
    """The samples speak of the width first."""
    return _fractional_max_pool(tensor, kernel_size, output_size, samples.flip(-1))


@decomposes(aten.fractional_max_pool3d.default)
def _fractional_max_pool(
    tensor: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows whose distance is a fraction: where each begins depends on one sample per picture, channel and axis."""
    axes = len(kernel_size)
    picture = tensor if tensor.dim() == axes + 2 else tensor.unsqueeze(0)
    batch, channels, *sizes = picture.shape
    place: Any = 0
    for axis, (kernel, out, size) in enumerate(zip(kernel_size, output_size, sizes, strict=True)):
        starts = _interval_starts(samples[:, :, axis], size, out, kernel)
        rows = starts.unsqueeze(-1) + torch.arange(kernel)  # [batch, channels, out, kernel]
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = out, kernel
        place = place * size + rows.reshape(batch, channels, *shape)
    window = math.prod(kernel_size)
    flat = place.reshape(batch, channels, -1)
    read = picture.reshape(batch, channels, -1).gather(2, flat).reshape(batch, channels, *output_size, window)
    values, best = read.max(-1)
    indices = place.reshape(batch, channels, *output_size, window).gather(-1, best.unsqueeze(-1)).squeeze(-1)
    if picture is not tensor:
        return values.squeeze(0), indices.squeeze(0)
    return values, indices


def _interval_starts(sample: torch.Tensor, size: int, out: int, kernel: int) -> torch.Tensor:
    """Torch's pseudo-random sequence; the last window ends where the picture does."""
    last = torch.full((*sample.shape, 1), size - kernel, dtype=torch.int64)
    if out == 1:
        return last
    gap = (size - kernel) / (out - 1)
    first = sample.unsqueeze(-1)
    starts = ((torch.arange(out - 1) + first) * gap).to(torch.int64) - (first * gap).to(torch.int64)
    return torch.cat([starts, last], -1)


def _window_count(length: Any, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Any:
    """How many windows of a pooling fit; with `ceil_mode` none that starts in the padding after the end."""
    span = length + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    return torch.sym_min((span + stride - 1) // stride + 1, (length + padding + stride - 1) // stride)


def _pooled(x: torch.Tensor, rank: int, *settings: Any, ceil_mode: bool) -> torch.Tensor:
    kernel, stride, padding, dilation = (each_axis(setting, rank) for setting in settings)
    axes = zip(x.shape[-rank:], kernel, stride, padding, dilation, strict=True)
    return x.new_empty((*x.shape[:-rank], *(_window_count(*of_axis, ceil_mode) for of_axis in axes)))


def _with_indices(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return values, values.new_empty(values.shape, dtype=torch.int64)


def _max_pool_sizes(rank: int, with_indices: bool) -> Callable[..., Any]:
    def sizes(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        values = _pooled(self, rank, kernel_size, stride or kernel_size, padding, dilation, ceil_mode=ceil_mode)
        return _with_indices(values) if with_indices else values

    return sizes


def _avg_pool_sizes(rank: int) -> Callable[..., torch.Tensor]:
    def sizes(
        self: torch.Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, *_: Any
    ) -> torch.Tensor:
        return _pooled(self, rank, kernel_size, stride or kernel_size, padding, 1, ceil_mode=ceil_mode)

    return sizes


@sizes_of(aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.adaptive_avg_pool3d.default)
def _adaptive_sizes(self: torch.Tensor, output_size: Sequence[Any]) -> torch.Tensor:
    return self.new_empty((*self.shape[: -len(output_size)], *output_size))


@sizes_of(aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def _adaptive_max_sizes(self: torch.Tensor, output_size: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    return _with_indices(_adaptive_sizes(self, output_size))


for _rank in (1, 2, 3):
    sizes_of(getattr(aten, f"avg_pool{_rank}d").default)(_avg_pool_sizes(_rank))
    sizes_of(getattr(aten, f"max_pool{_rank}d").default)(_max_pool_sizes(_rank, with_indices=False))
    sizes_of(getattr(aten, f"max_pool{_rank}d_with_indices").default)(_max_pool_sizes(_rank, with_indices=True))
