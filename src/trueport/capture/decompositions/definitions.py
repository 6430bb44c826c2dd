"""Operators said by other operators, where torch's own way would read a free size or a value as a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from trueport.capture.decompositions.fft_defined import TRANSFORMS
from trueport.capture.decompositions.gradient_defined import GRADIENTS
from trueport.capture.decompositions.indexing import get_item
from trueport.capture.decompositions.layers_defined import LAYERS
from trueport.capture.decompositions.linalg_defined import LINEAR_ALGEBRA
from trueport.capture.decompositions.packed import pack_padded, pad_packed, pad_sequences
from trueport.capture.decompositions.products_defined import PRODUCTS
from trueport.capture.decompositions.quantised import QUANTISED
from trueport.capture.decompositions.stand_ins import kaiser_window
from trueport.capture.decompositions.statistics_defined import STATISTICS
from trueport.capture.stops.cannot_be_carried import CannotBeCarried
from trueport.torch_internals import OpOverload, outside_all_modes

aten = torch.ops.aten


def _unbind(tensor: torch.Tensor, dim: int = 0) -> list[torch.Tensor]:
    """Torch undoes `unbind` by way of the plain sizes of all axes, `select` by way of the symbolic ones."""
    return [tensor.select(dim, i) for i in range(tensor.shape[dim])]


def _squeeze(tensor: torch.Tensor) -> torch.Tensor:
    """Torch takes a free size not to be 1 here, and keeps no note of it."""
    return tensor.squeeze([axis for axis, size in enumerate(tensor.shape) if size == 1])


def _squeeze_axis(tensor: torch.Tensor, dim: int) -> Any:
    """An axis of a free size stays, which is wrong where the size is 1: noted, as above."""
    if tensor.dim() == 0 or not isinstance(tensor.shape[dim], torch.SymInt):
        return NotImplemented
    return tensor.squeeze([dim] if tensor.shape[dim] == 1 else [])


def _zeros(size: Any, **options: Any) -> torch.Tensor:
    return torch.zeros(size, **options)


def _take_along_dim(tensor: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Torch broadcasts the two by plain sizes."""
    if dim is None:
        return tensor.flatten().gather(0, indices.flatten())
    dim = dim % tensor.dim()
    pairs = zip(tensor.shape, indices.shape, strict=True)
    sizes = [torch.broadcast_shapes((a,), (b,))[0] if i != dim else a for i, (a, b) in enumerate(pairs)]
    wanted = [*sizes[:dim], indices.shape[dim], *sizes[dim + 1 :]]
    return tensor.expand(sizes).gather(dim, indices.expand(wanted))


def _tensor_split(tensor: torch.Tensor, sections: int, dim: int = 0) -> list[torch.Tensor]:
    """The first parts are one longer where the length is no multiple; torch would count them out in plain numbers."""
    length = tensor.shape[dim]
    sizes = [(length + sections - 1 - i) // sections for i in range(sections)]
    return list(tensor.split_with_sizes(sizes, dim))


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


def _unsafe_masked_index(
    tensor: torch.Tensor, mask: torch.Tensor, indices: list[torch.Tensor | None], fill: Any
) -> torch.Tensor:
    """What is masked may have an index that is none; negative ones count from the end, as in eager's kernel."""
    if any(isinstance(size, int) and size == 0 for size in tensor.shape):
        return torch.full_like(mask, fill, dtype=tensor.dtype)
    within = [
        slice(None) if index is None else index.clamp(-size, size - 1)
        for index, size in zip(indices, tensor.shape, strict=False)
    ]
    return torch.where(mask, tensor[tuple(within)], torch.full((), fill, dtype=tensor.dtype))


def _triangle_indices(mask: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Known numbers give a known table; torch's formula goes through square roots, which an empty one divides by."""

    def indices(row: int, col: int, offset: int = 0, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
        if not (isinstance(row, int) and isinstance(col, int)):
            return NotImplemented
        with outside_all_modes():
            return mask(row, col, offset, dtype=dtype or torch.int64)

    return indices


def _fill_diagonal_(tensor: torch.Tensor, value: Any, wrap: bool = False) -> torch.Tensor:
    """Torch walks over the memory by strides, which no value of a graph has."""
    if wrap or tensor.dim() != 2:
        raise CannotBeCarried(
            "fill_diagonal_ of more than two axes, or wrapped around, is not carried",
            "write the elements by their indices: i = torch.arange(n); y[i, i] = value",
        )
    tensor.diagonal().fill_(value)
    return tensor


DEFINITIONS: dict[OpOverload, Callable[..., Any]] = {
    aten.fill_diagonal_.default: _fill_diagonal_,
    aten.squeeze.default: _squeeze,
    aten.squeeze.dim: _squeeze_axis,
    aten._efficientzerotensor.default: _zeros,
    aten.tensor_split.sections: _tensor_split,
    aten.tensor_split.tensor_indices_or_sections: _tensor_split_at,
    aten._unsafe_masked_index.default: _unsafe_masked_index,
    aten.take_along_dim.default: _take_along_dim,
    aten.tril_indices.default: _triangle_indices(torch.tril_indices),
    aten.triu_indices.default: _triangle_indices(torch.triu_indices),
    aten._pack_padded_sequence.default: pack_padded,
    aten._pad_packed_sequence.default: pad_packed,
    aten.pad_sequence.default: pad_sequences,
    **dict.fromkeys((aten.kaiser_window.default, aten.kaiser_window.periodic, aten.kaiser_window.beta), kaiser_window),
    **GRADIENTS,
    **LAYERS,
    **PRODUCTS,
    **LINEAR_ALGEBRA,
    **STATISTICS,
    **TRANSFORMS,
    **QUANTISED,
}
"""Used instead of torch's own."""

WRITABLE_VIEWS: dict[OpOverload, Callable[..., Any]] = {aten.unbind.int: _unbind}
"""Used where views may be written to; elsewhere such an operator is recorded as it is."""
