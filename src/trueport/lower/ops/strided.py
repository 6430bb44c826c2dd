"""Reading and writing by strides. Capture has seen to it that the tensor is all of its memory, in order."""

from __future__ import annotations

from collections.abc import Sequence

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import count, size_of
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Sizes = Sequence[int | Number]


@op("aten::as_strided", "aten::as_strided_copy")
def as_strided(
    op: Builder, self: Tensor, size: Sizes, stride: Sizes, storage_offset: int | Number | None = None
) -> Tensor:
    """as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"""
    flat = op.reshape(self, (count(self.known_sizes),))
    return op.Gather(flat, _places(op, size, stride, storage_offset), axis=0)


@op("aten::as_strided_scatter")
def as_strided_scatter(
    op: Builder, self: Tensor, src: Tensor, size: Sizes, stride: Sizes, storage_offset: int | Number | None = None
) -> Tensor:
    """as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)"""
    flat = op.reshape(self, (count(self.known_sizes),))
    places = op.Unsqueeze(_places(op, size, stride, storage_offset), op.ints(-1))
    written = op.ScatterND(flat, places, op.cast(src, self.element))
    written.settle(flat.known_sizes)
    return op.reshape(written, self.known_sizes)


def _places(op: Builder, size: Sizes, stride: Sizes, storage_offset: int | Number | None) -> Tensor:
    """Where each element lies, as int64 of the sizes asked for."""
    places = op.size(size_of(storage_offset or 0))
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        along = op.Mul(op.range(length), op.size(size_of(step)))
        behind = len(size) - axis - 1
        places = op.Add(places, op.Unsqueeze(along, op.ints(*range(1, 1 + behind))) if behind else along)
    return places
