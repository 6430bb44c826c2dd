"""Reading by positions and by masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import axis_of, broadcast, count
from trueport.lower.ops.create import filled
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

INT64, BOOL = ir.DataType.INT64, ir.DataType.BOOL
MASKS = (ir.DataType.BOOL, ir.DataType.UINT8)


@op("aten::embedding")
def embedding(
    op: Builder,
    weight: Tensor,
    indices: Tensor,
    padding_idx: int | Number = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False,
    bool sparse=False) -> Tensor; padding matters to gradients only"""
    return op.Gather(weight, indices, axis=0)


@op("aten::gather")
def gather(op: Builder, self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"""
    if not self.rank:
        return op.expand(op.reshape(self, (1,) * index.rank), index.known_sizes)
    if not index.rank:
        return op.reshape(op.GatherElements(self, op.reshape(index, (1,)), axis=0), ())
    if index.rank != self.rank:  # eager looks at no axis of an index that holds nothing
        return op.expand(op.const(0, self.element), index.known_sizes)
    return op.GatherElements(self, op.cast(index, INT64), axis=axis_of(dim, self.rank))


@op("aten::index_select")
def index_select(op: Builder, self: Tensor, dim: int, index: Tensor) -> Tensor:
    """index_select(Tensor self, int dim, Tensor index) -> Tensor"""
    if not self.rank:
        return self
    rows = op.reshape(index, (1,)) if not index.rank else index
    return op.Gather(self, rows, axis=axis_of(dim, self.rank))


@op("aten::take")
def take(op: Builder, self: Tensor, index: Tensor) -> Tensor:
    """take(Tensor self, Tensor index) -> Tensor"""
    return op.Gather(op.reshape(self, (count(self.known_sizes),)), index, axis=0)


@op("aten::nonzero")
def nonzero(op: Builder, self: Tensor) -> Tensor:
    """nonzero(Tensor self) -> Tensor"""
    if not self.rank:
        found = op.reshape(op.cast(op.cast(self, BOOL), INT64), (1,))
        return op.Expand(op.const([[]], INT64), op.Concat(found, op.ints(0), axis=0))
    return op.transpose(positions(op, self), (1, 0))


def positions(op: Builder, mask: Tensor) -> Tensor:
    """Where a mask is true: one row for each axis, one column for each place."""
    return op.shared("positions", mask.name, make=lambda: op.NonZero(op.cast(mask, BOOL)))


@op("aten::nonzero_static")
def nonzero_static(op: Builder, self: Tensor, *, size: int | Number, fill_value: int = -1) -> Tensor:
    """nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor"""
    found = nonzero(op, self)
    rest = filled(op, op.result.shape, fill_value, op.result.dtype)
    return op.Slice(op.Concat(found, rest, axis=0), op.ints(0), op.shape([size]), op.ints(0))


@op("aten::masked_select")
def masked_select(op: Builder, self: Tensor, mask: Tensor) -> Tensor:
    """masked_select(Tensor self, Tensor mask) -> Tensor"""
    values, kept = alike(op, self, op.cast(mask, BOOL))
    return op.Compress(op.Reshape(values, op.ints(-1)), op.Reshape(kept, op.ints(-1)), axis=0)


def alike(op: Builder, *tensors: Tensor) -> list[Tensor]:
    """Tensors broadcast to one shape. A free size may turn out to be 1, so the runtime finds out which."""
    if all(x.sizes == tensors[0].sizes for x in tensors):
        return list(tensors)
    if all(isinstance(size, int) for x in tensors for size in x.known_sizes):
        sizes = broadcast(*(x.known_sizes for x in tensors))
        return [op.expand(x, sizes) for x in tensors]
    largest = op.Shape(reduce(lambda wide, x: op.Expand(wide, op.Shape(x)), tensors, op.const(False)))
    wide = [op.Expand(x, largest) for x in tensors]
    sizes = broadcast(*(x.known_sizes for x in tensors))
    for x in wide:
        x.sizes = sizes
    return wide


@dataclass(frozen=True)
class Indexing:
    """`x[indices]`, with masks turned into positions: which axes are addressed, and by what."""

    axes: tuple[int, ...]
    """The addressed axes, in order."""
    tensors: tuple[Tensor, ...]
    """int64, one for each of them, all of one shape after broadcasting."""
    rank: int
    """The rank of that shape."""
    place: int
    """Where its axes stand in the result: at the first addressed axis if those are neighbours, else in front."""


def read_indices(op: Builder, self: Tensor, indices: Sequence[Tensor | None]) -> Indexing:
    """A mask addresses as many axes as it has; None addresses one and leaves it whole."""
    axes: list[int] = []
    tensors: list[Tensor] = []
    shapes: list[tuple[Size, ...] | None] = []
    # Runs of addressed axes are counted as the user wrote them: a mask of two axes is one index.
    runs, before = 0, False
    axis = 0
    for index in indices:
        runs += index is not None and not before
        before = index is not None
        if index is None:
            axis += 1
        elif index.dtype in MASKS:
            found = positions(op, index)
            for row in range(index.rank):
                axes.append(axis)
                tensors.append(op.Gather(found, op.const(row), axis=0))
                shapes.append(None)
                axis += 1
        else:
            axes.append(axis)
            tensors.append(op.cast(index, INT64))
            shapes.append(index.known_sizes)
            axis += 1
    rank = max(1 if sizes is None else len(sizes) for sizes in shapes)
    if len(set(shapes)) > 1:
        # Adding the sum's own difference broadcasts all to one shape without having to know it.
        total = reduce(op.Add, tensors)
        nothing = op.Sub(total, total)
        tensors = [op.Add(index, nothing) for index in tensors]
    return Indexing(tuple(axes), tuple(tensors), rank, axes[0] if runs == 1 else 0)


def as_coordinates(op: Builder, indexing: Indexing) -> Tensor:
    """What GatherND and ScatterND take: the coordinates of each place along a last axis."""
    last = op.ints(-1)
    parts = [op.Unsqueeze(index, last) for index in indexing.tensors]
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=-1)


@op("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(op: Builder, self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"""
    given = [i for i, entry in enumerate(indices) if entry is not None]
    if len(given) == 1:
        only = indices[given[0]]
        assert only is not None
        if only.dtype not in MASKS:
            return op.Gather(self, only, axis=given[0])
        if only.rank == 1:
            return op.Compress(self, op.cast(only, BOOL), axis=given[0])
    indexing = read_indices(op, self, indices)
    if len(indexing.axes) == 1:
        return op.Gather(self, indexing.tensors[0], axis=indexing.axes[0])
    rest = [axis for axis in range(self.rank) if axis not in indexing.axes]
    front = op.transpose(self, [*indexing.axes, *rest])
    found = op.GatherND(front, as_coordinates(op, indexing))
    return op.transpose(found, back_in_place(indexing, len(rest)))


def back_in_place(indexing: Indexing, others: int) -> list[int]:
    """The order of axes that moves the addressed ones, found in front, to where eager has them."""
    first = list(range(indexing.rank))
    rest = list(range(indexing.rank, indexing.rank + others))
    return [*rest[: indexing.place], *first, *rest[indexing.place :]]
