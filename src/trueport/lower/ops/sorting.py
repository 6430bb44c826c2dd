"""Sorting, ranking, and finding what is unique."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import axis_of, count, floor_div, to_front
from trueport.lower.ops.reduce import nan_along
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

AnySize = int | Number
INT64, BOOL, DOUBLE = ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.DOUBLE


def _top(
    op: Builder, self: Tensor, k: Size | Number, dim: int, largest: bool, ordered: bool = True
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest with their places; of equals, the first comes first, in ONNX as in eager."""
    if not self.rank:
        values, places = _top(op, op.reshape(self, (1,)), 1, 0, largest)
        return op.reshape(values, ()), op.reshape(places, ())
    axis, narrow = axis_of(dim, self.rank), self.element
    if narrow.is_floating_point():
        _, places = op.many("TopK", 2, _comparable(op, self), op.shape([k]), axis=axis, largest=int(largest))
        return op.GatherElements(self, places, axis=axis), places
    x = op.cast(self, ir.DataType.INT32) if narrow == BOOL else self
    values, places = op.many("TopK", 2, x, op.shape([k]), axis=axis, largest=int(largest))
    return op.cast(values, narrow), places


def _comparable(op: Builder, x: Tensor) -> Tensor:
    """Floats as numbers that can be put in order. In eager NaN is above all; the runtime's TopK, where there is one,
    puts the others out of order as well (faulty_kernels.py). In double there is room above infinity, but for doubles
    themselves: there an infinity counts as the largest number, of which few models have both."""
    bounded = op.Min(op.cast(x, DOUBLE), float(DOUBLE.max))
    return op.Where(op.IsNaN(x), op.const(math.inf, DOUBLE), bounded)


@op("aten::topk")
def topk(
    op: Builder, self: Tensor, k: AnySize, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sequence[Tensor]:
    """topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)"""
    return _top(op, self, k, dim, largest)


@op("aten::sort")
def sort(op: Builder, self: Tensor, dim: int = -1, descending: bool = False) -> Sequence[Tensor]:
    """sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"""
    return _top(op, self, _length(self, dim), dim, descending)


@op("aten::sort.stable")
def sort_stable(
    op: Builder, self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> Sequence[Tensor]:
    """sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor, Tensor)"""
    return _top(op, self, _length(self, dim), dim, descending)


@op("aten::argsort")
def argsort(op: Builder, self: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"""
    return _top(op, self, _length(self, dim), dim, descending)[1]


@op("aten::argsort.stable")
def argsort_stable(op: Builder, self: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor"""
    return _top(op, self, _length(self, dim), dim, descending)[1]


def _length(self: Tensor, dim: int) -> Size:
    return self.known_sizes[axis_of(dim, self.rank)] if self.rank else 1


@op("aten::kthvalue")
def kthvalue(op: Builder, self: Tensor, k: AnySize, dim: int = -1, keepdim: bool = False) -> Sequence[Tensor]:
    """kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"""
    return _kth(op, self, k, dim, keepdim)


@op("aten::median.dim")
def median_dim(op: Builder, self: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    """median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices); the lower of two"""
    return _median(op, self, dim, keepdim)


@op("aten::median")
def median(op: Builder, self: Tensor) -> Tensor:
    """median(Tensor self) -> Tensor"""
    return _median(op, op.reshape(self, (count(self.known_sizes),)), 0, False)[0]


def _median(op: Builder, self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The lower of the two in the middle; the first NaN where there is one."""
    half = floor_div(_length(self, dim) + 1, 2)
    if not self.rank or not self.element.is_floating_point():
        return _kth(op, self, half, dim, keepdim)
    axis = axis_of(dim, self.rank)
    any_nan, first_nan = nan_along(op, self, axis, keepdims=1)
    places = op.Where(any_nan, first_nan, _kth(op, self, half, dim, True)[1])
    values = op.GatherElements(self, places, axis=axis)
    if keepdim:
        return values, places
    return op.Squeeze(values, op.ints(axis)), op.Squeeze(places, op.ints(axis))


def _kth(op: Builder, self: Tensor, k: AnySize | Size, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    if not self.rank:
        return self, op.const(0)
    axis = axis_of(dim, self.rank)
    last = op.ints(-1) if keepdim else op.const(-1)
    values, places = _top(op, self, k, dim, largest=False)
    return op.Gather(values, last, axis=axis), op.Gather(places, last, axis=axis)


@op("aten::_unique2", "aten::_unique")
def unique(
    op: Builder, self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Sequence[Tensor]:
    """_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False)
    -> (Tensor, Tensor, Tensor); eager sorts whatever was asked

    No NaN is equal to another, which the runtime's `Unique` does not know, and then loses other numbers too.
    """
    if self.element.is_floating_point():
        total = count(self.known_sizes)
        in_order, places = _top(op, op.reshape(self, (total,)), total, 0, largest=False)
        in_order.settle((total,))
        values, runs, counts = _runs(op, in_order, in_order, 0)
        return values, op.reshape(op.ScatterElements(runs, places, runs, axis=0), self.known_sizes), counts
    values, _, inverse, counts = op.many("Unique", 4, self, sorted=1)
    return values, op.reshape(inverse, self.known_sizes), counts


@op("aten::unique_dim")
def unique_dim(
    op: Builder, self: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Sequence[Tensor]:
    """unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False)
    -> (Tensor, Tensor, Tensor)"""
    values, _, inverse, counts = op.many("Unique", 4, self, axis=axis_of(dim, self.rank), sorted=1)
    return values, inverse, counts


@op("aten::unique_consecutive")
def unique_consecutive(
    op: Builder, self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Sequence[Tensor]:
    """unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None)
    -> (Tensor, Tensor, Tensor)"""
    if dim is not None and self.rank > 1:
        return _unique_rows(op, self, axis_of(dim, self.rank))
    total = count(self.known_sizes)
    flat = op.reshape(self, (total,))
    values, inverse, counts = _runs(op, flat, flat, 0)
    return values, op.reshape(inverse, self.known_sizes), counts


def _unique_rows(op: Builder, self: Tensor, axis: int) -> Sequence[Tensor]:
    """Slices along an axis: each is laid out as a row, and compared with the one before."""
    front = to_front(op, self, axis)
    length = front.known_sizes[0]
    return _runs(op, self, op.reshape(front, (length, count(front.known_sizes[1:]))), axis)


def _runs(op: Builder, self: Tensor, rows: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """(the first of each run, the run that each belongs to, how long each run is), by comparing neighbours."""
    before, after = (op.Slice(rows, op.ints(start), op.ints(end), op.ints(0)) for start, end in ((0, -1), (1, 2**62)))
    differs = op.Not(op.Equal(before, after))
    if rows.rank > 1:
        differs = op.cast(op.ReduceSum(op.cast(differs, INT64), op.ints(1), keepdims=0), BOOL)
    number = op.Shape(rows, start=0, end=1)
    # The first is always new, if there is one.
    first = op.Expand(op.const(True), op.Min(number, op.ints(1)))
    new = op.Concat(first, differs, axis=0)
    starts = op.Squeeze(op.NonZero(new), op.ints(0))
    ends = op.Concat(op.Slice(starts, op.ints(1), op.ints(2**62), op.ints(0)), number, axis=0)
    counts = op.Sub(op.Slice(ends, op.ints(0), op.Shape(starts), op.ints(0)), starts)
    inverse = op.Sub(op.CumSum(op.cast(new, INT64), op.const(0)), 1)
    inverse.settle((rows.known_sizes[0],))
    return op.Compress(self, new, axis=axis), inverse, counts
