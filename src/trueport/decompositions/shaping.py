"""Views, cuts and elements taken by their place: torch reads sizes and places as plain numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.creation import tensor_of
from trueport.decompositions.indexing import get_item
from trueport.decompositions.pooling import laid_out
from trueport.decompositions.registry import decomposes, is_or_holds_single, number_in, sizes_of
from trueport.torch_internals import GuardOnDataDependentSymNode
from trueport.torch_internals.releases import length_of_slice
from trueport.torch_internals.symbolic import expr_of, is_symbolic, same_number, shapes_of

aten = torch.ops.aten


def _single_among_sizes(given: Sequence[Any]) -> bool:
    return any(map(is_or_holds_single, given[1:]))


def _shaped_by_numbers(function: Callable[..., Any]) -> None:
    @decomposes(function, when=_single_among_sizes)
    def shaped(*given: Any, **named: Any) -> Any:
        """`x.view(h, w)` with tensors of one number. Torch reads where each lies in memory before it reads the number,
        and nobody knows that of `h, w = sizes[i]` in a loop."""
        sizes = {name: value if name == "input" else number_in(value) for name, value in named.items()}
        return function(*given[:1], *map(number_in, given[1:]), **sizes)


for _function in (
    *(torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.expand, torch.Tensor.repeat, torch.Tensor.tile),
    *(torch.Tensor.new_zeros, torch.Tensor.new_ones, torch.Tensor.new_empty, torch.Tensor.unflatten),
    *(torch.reshape, torch.tile, torch.broadcast_to, torch.unflatten),
):
    _shaped_by_numbers(_function)


@decomposes(aten.unbind.int, views_only=True)
def _unbind(tensor: torch.Tensor, dim: int = 0) -> list[torch.Tensor]:
    """Torch undoes `unbind` by way of the plain sizes of all axes, `select` by way of the symbolic ones."""
    return [tensor.select(dim, i) for i in range(tensor.shape[dim])]


@decomposes(aten.squeeze.default)
def _squeeze(tensor: torch.Tensor) -> torch.Tensor:
    """Torch takes a free size not to be 1 here, and keeps no note of it."""
    return tensor.squeeze([axis for axis, size in enumerate(tensor.shape) if size == 1])


@decomposes(aten.squeeze.dim)
def _squeeze_axis(tensor: torch.Tensor, dim: int) -> Any:
    """An axis of a free size stays, which is wrong where the size is 1: noted, as above."""
    if tensor.dim() == 0 or not is_symbolic(tensor.shape[dim]):
        return NotImplemented
    return tensor.squeeze([dim] if tensor.shape[dim] == 1 else [])


@decomposes(aten.take_along_dim.default)
def _take_along_dim(tensor: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """`gather`, after both were broadcast along the other axes; places count round and round, as in eager."""
    if dim is None:
        return tensor.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % tensor.dim()
    pairs = list(zip(tensor.shape, indices.shape, strict=True))
    common = [_broadcast(one, other) for one, other in pairs]
    wide = tensor.expand([tensor.shape[axis] if i == axis else size for i, size in enumerate(common)])
    places = indices.expand([indices.shape[axis] if i == axis else size for i, size in enumerate(common)])
    return wide.gather(axis, places % tensor.shape[axis])


def _broadcast(one: Any, other: Any) -> Any:
    """Of two sizes the one that is not known to be 1; a number rather than a symbol."""
    if not is_symbolic(one):
        return other if one == 1 else one
    return one if same_number(other, 1) else other


@decomposes(aten.diff.default)
def _diff(
    tensor: torch.Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> torch.Tensor:
    """Torch asks whether there are as many items as differences; the cuts of a shorter row are empty as well."""
    given = [part for part in (prepend, tensor, append) if part is not None]
    result = torch.cat(given, dim) if len(given) > 1 else tensor
    before = (*[slice(None)] * (dim % tensor.dim()),)
    for _ in range(n):
        later, earlier = (get_item(result, (*before, part)) for part in (slice(1, None), slice(None, -1)))
        result = later ^ earlier if tensor.dtype == torch.bool else later - earlier
    return result.clone() if result is tensor else result


@decomposes(aten.tensor_split.sections)
def _tensor_split(tensor: torch.Tensor, sections: int, dim: int = 0) -> list[torch.Tensor]:
    """The first parts are one longer where the length is no multiple; torch would count them out in plain numbers."""
    length = tensor.shape[dim]
    sizes = [(length + sections - 1 - i) // sections for i in range(sections)]
    return list(tensor.split_with_sizes(sizes, dim))


@decomposes(aten.tensor_split.tensor_indices_or_sections)
def _tensor_split_at(tensor: torch.Tensor, places: torch.Tensor, dim: int = 0) -> list[torch.Tensor]:
    """Cut where a tensor says; torch would read it."""
    if places.dim() == 0:
        raise CannotBeCarried(
            "the number of parts is the value of a tensor here, and an ONNX model has its values written down once",
            "give the number of parts as a plain number",
        )
    edges = [None, *(places[i].item() for i in range(places.shape[0])), None]
    before = (*[slice(None)] * (dim % tensor.dim()),)
    return [get_item(tensor, (*before, slice(*pair))) for pair in itertools.pairwise(edges)]


@decomposes(aten._unsafe_masked_index.default)
def _unsafe_masked_index(
    tensor: torch.Tensor, mask: torch.Tensor, indices: list[torch.Tensor | None], fill: Any
) -> torch.Tensor:
    """What is masked may have an index that is none; negative ones count from the end, as in eager's kernel."""
    if any(same_number(size, 0) for size in tensor.shape):
        return torch.full_like(mask, fill, dtype=tensor.dtype)
    within = [
        slice(None) if index is None else index.clamp(-size, size - 1)
        for index, size in zip(indices, tensor.shape, strict=False)
    ]
    return torch.where(mask, tensor[tuple(within)], torch.full((), fill, dtype=tensor.dtype))


@decomposes(aten.fill_diagonal_.default)
def _fill_diagonal_(tensor: torch.Tensor, value: Any, wrap: bool = False) -> torch.Tensor:
    """Torch walks over the memory by strides, which no value of a graph has."""
    if wrap or tensor.dim() != 2:
        raise CannotBeCarried(
            "fill_diagonal_ of more than two axes, or wrapped around, is not carried",
            "write the elements by their indices: i = torch.arange(n); y[i, i] = value",
        )
    tensor.diagonal().fill_(value)
    return tensor


@decomposes(F.pad)
def _pad(input: torch.Tensor, pad: Any, mode: str = "constant", value: Any = None) -> torch.Tensor:
    """Padding with a traced number: zeros, and the number where nothing of the input is."""
    if mode != "constant" or not is_symbolic(value):
        return F.pad(input, pad, mode, value)
    inside = F.pad(torch.ones_like(input, dtype=torch.bool), pad)
    return torch.where(inside, F.pad(input, pad), tensor_of(value, dtype=input.dtype))


@decomposes(torch.Tensor.unfold)
def _unfold(input: torch.Tensor, dimension: int, size: Any, step: Any) -> torch.Tensor:
    """Overlapping pieces of an axis, their elements on a new last axis."""
    axis = dimension % input.dim()
    starts = torch.arange((input.shape[axis] - size) // step + 1) * step
    index = starts.unsqueeze(1) + torch.arange(size)
    return laid_out(input, axis, index).movedim(axis + 1, -1)


@decomposes(F.pixel_shuffle)
def _pixel_shuffle(input: torch.Tensor, upscale_factor: Any) -> torch.Tensor:
    """Channels become the points of a finer picture."""
    *lead, channels, height, width = input.shape
    times = upscale_factor
    fine = input.reshape((*lead, channels // (times * times), times, times, height, width))
    at = len(lead) + 1
    order = (*range(at), at + 2, at, at + 3, at + 1)
    return fine.permute(order).reshape((*lead, channels // (times * times), height * times, width * times))


@decomposes(F.pixel_unshuffle)
def _pixel_unshuffle(input: torch.Tensor, downscale_factor: Any) -> torch.Tensor:
    *lead, channels, height, width = input.shape
    times = downscale_factor
    coarse = input.reshape((*lead, channels, height // times, times, width // times, times))
    at = len(lead) + 1
    order = (*range(at), at + 1, at + 3, at, at + 2)
    return coarse.permute(order).reshape((*lead, channels * times * times, height // times, width // times))


@sizes_of(aten.view.default)
def _view(self: torch.Tensor, size: Sequence[Any]) -> torch.Tensor:
    """Torch asks how the memory lies, which has no answer where only the run tells the sizes; a graph has no memory."""
    try:
        return aten.view.default(self, size)  # type: ignore[no-any-return]
    except GuardOnDataDependentSymNode:
        others: Any = math.prod(length for length in size if not is_left_open(length))
        return self.new_empty([self.numel() // others if is_left_open(length) else length for length in size])


@sizes_of(aten.slice.Tensor)
def _slice(self: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> torch.Tensor:
    """`x[t : t + 1]` in a loop over the rows has one row: torch has a new symbol for the length of such a slice.

    So many rows it has where it is known that both bounds are in x; elsewhere it may have fewer.
    """
    sizes: list[Any] = [*self.shape]
    if is_symbolic(start) and is_symbolic(end) and same_number(step, 1):
        shapes, known = shapes_of(start), expr_of(end - start)
        rows = self.shape[dim]
        if known.is_Integer and shapes.is_never_negative(start) and shapes.is_never_negative(rows - end):
            sizes[dim] = max(int(known), 0)
            return self.new_empty_strided(sizes, self.stride())
    if (length := length_of_slice(self.shape[dim], start, end, step)) is not None:
        strides = [*self.stride()]
        sizes[dim], strides[dim] = length, strides[dim] * step
        return self.new_empty_strided(sizes, strides)
    return aten.slice.Tensor(self, dim, start, end, step)  # type: ignore[no-any-return]


@sizes_of(aten.repeat_interleave.self_Tensor)
def _repeat_interleave(
    self: torch.Tensor, repeats: torch.Tensor, dim: int | None = None, *, output_size: Any = None
) -> torch.Tensor:
    """Torch asks whether there is a number for each element. Where values give both lengths it cannot be told; eager
    refuses the input if not."""
    try:
        return aten.repeat_interleave.self_Tensor(  # type: ignore[no-any-return]
            self, repeats, dim, output_size=output_size
        )
    except GuardOnDataDependentSymNode:
        index = aten.repeat_interleave.Tensor(repeats, output_size=output_size)
        sizes: list[Any] = [self.numel()] if dim is None else [*self.shape]
        sizes[dim or 0] = index.shape[0]
        return self.new_empty(sizes)


@sizes_of(aten.diagonal.default)
def _diagonal(self: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """As torch's own from 2.11 on; before, it decides by the example which of the two axes is the shorter one."""
    one, other = dim1 % self.dim(), dim2 % self.dim()
    length = torch.sym_max(0, torch.sym_min(self.shape[one] + min(offset, 0), self.shape[other] - max(offset, 0)))
    kept = [axis for axis in range(self.dim()) if axis not in (one, other)]
    strides = [*(self.stride(axis) for axis in kept), self.stride(one) + self.stride(other)]
    return self.new_empty_strided([*(self.shape[axis] for axis in kept), length], strides)


def is_left_open(length: Any) -> bool:
    """The size of a reshape that follows from the others."""
    return same_number(length, -1)
