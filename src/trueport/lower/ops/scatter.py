"""Writing by positions and by masks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.exact.division import floor_div
from trueport.lower.ops.axes import axis_of, count
from trueport.lower.ops.index import (
    MASKS,
    alike,
    as_coordinates,
    back_in_place,
    positions,
    read_indices,
)
from trueport.lower.ops.joining import REDUCED_IN, put_rows
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

INT64, BOOL = ir.DataType.INT64, ir.DataType.BOOL

REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
"""Torch's names, and ONNX's."""


@op("aten::index_put", "aten::_unsafe_index_put")
def index_put(
    op: Builder, self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"""
    values = op.cast(values, self.element)
    first = indices[0] if indices else None
    one_number = all(size == 1 for size in values.known_sizes)
    if first is not None and len(indices) == 1 and first.dtype in MASKS and one_number and not accumulate:
        return _where_masked(op, self, first, values)
    indexing = read_indices(op, self, indices)
    rest = [axis for axis in range(self.rank) if axis not in indexing.axes]
    order = [*indexing.axes, *rest]
    front = op.transpose(self, order)
    coordinates = as_coordinates(op, indexing)
    # Values broadcast to what reading by these indices would give; then the addressed axes come to the front.
    read = back_in_place(indexing, len(rest))
    lengths = [op.Shape(indexing.tensors[0])] if indexing.rank else []
    lengths += [op.shape([self.known_sizes[axis] for axis in rest])] if rest else []
    full = op.ints() if not lengths else lengths[0] if len(lengths) == 1 else op.Concat(*lengths, axis=0)
    if read != sorted(read):
        full = op.Gather(full, op.ints(*read), axis=0)
    updates = op.Expand(values, full)
    updates = op.transpose(updates, [read.index(axis) for axis in range(len(read))])
    written = _scatter_nd(op, front, coordinates, updates, accumulate)
    return op.transpose(written, [order.index(axis) for axis in range(self.rank)])


def _scatter_nd(op: Builder, data: Tensor, coordinates: Tensor, updates: Tensor, accumulate: bool) -> Tensor:
    if not accumulate:
        return op.ScatterND(data, coordinates, updates)
    wide = REDUCED_IN.get(data.element, data.element)
    added = op.ScatterND(op.cast(data, wide), coordinates, op.cast(updates, wide), reduction="add")
    return op.cast(added, data.element)


def _where_masked(op: Builder, self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """`x[mask] = number`: a choice, element by element."""
    wide = op.cast(mask, BOOL)
    if mask.rank < self.rank:
        wide = op.Unsqueeze(wide, op.ints(*range(mask.rank, self.rank)))
    return op.Where(wide, op.reshape(value, ()), self)


@op("aten::masked_scatter")
def masked_scatter(op: Builder, self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor; as many of source as the mask has places"""
    if not op.result.shape:
        return op.Where(op.cast(mask, BOOL), op.reshape(source, ()), self)
    wide, chosen = alike(op, self, op.cast(mask, BOOL))
    places = op.transpose(positions(op, chosen), (1, 0))
    flat = op.reshape(op.cast(source, self.element), (count(source.known_sizes),))
    taken = op.Slice(flat, op.ints(0), op.Shape(places, start=0, end=1), op.ints(0))
    return op.ScatterND(wide, places, taken)


@op("aten::scatter.src", "aten::scatter.reduce")
def scatter(op: Builder, self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str = "none") -> Tensor:
    """scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"""
    return _scattered(op, self, dim, index, _as_index(op, src, index), REDUCTIONS.get(reduce, "none"))


@op("aten::scatter.value", "aten::scatter.value_reduce")
def scatter_value(
    op: Builder, self: Tensor, dim: int, index: Tensor, value: Operand, *, reduce: str = "none"
) -> Tensor:
    """scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"""
    updates = op.expand(op.scalar(value, self.element), index.known_sizes)
    return _scattered(op, self, dim, index, updates, REDUCTIONS.get(reduce, "none"))


@op("aten::scatter_add")
def scatter_add(op: Builder, self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"""
    return _scattered(op, self, dim, index, _as_index(op, src, index), "add")


@op("aten::scatter_reduce.two")
def scatter_reduce(
    op: Builder, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)

    Without `self` included, the places that are written start from what changes nothing (0, 1, the lowest, ...).
    """
    if self.dtype == BOOL:
        wide = [op.cast(x, ir.DataType.INT32) for x in (self, src)]
        return op.cast(scatter_reduce(op, wide[0], dim, index, wide[1], reduce, include_self=include_self), BOOL)
    updates = _as_index(op, src, index)
    start = self
    if not include_self:
        neutral = op.expand(_neutral(op, reduce, self.element), index.known_sizes)
        start = _scattered(op, self, dim, index, neutral, "none")
    if reduce != "mean":
        return _scattered(op, start, dim, index, updates, REDUCTIONS[reduce])
    total = _scattered(op, start, dim, index, updates, "add")
    ones = op.expand(op.const(1, self.element), index.known_sizes)
    first = op.expand(op.const(int(include_self), self.element), self.known_sizes)
    written = _scattered(op, first, dim, index, ones, "add")
    number = op.Where(op.Equal(written, 0), op.const(1, self.element), written)
    return op.Div(total, number) if self.element.is_floating_point() else floor_div(op, total, number)


def _neutral(op: Builder, reduce: str, dtype: ir.DataType) -> Tensor:
    if reduce in ("amax", "amin"):
        if dtype.is_floating_point():
            return op.const(-math.inf if reduce == "amax" else math.inf, dtype)
        return op.const(dtype.min if reduce == "amax" else dtype.max, dtype)
    return op.const(1 if reduce == "prod" else 0, dtype)


def _as_index(op: Builder, src: Tensor, index: Tensor) -> Tensor:
    """Only as much of `src` as the index speaks of."""
    if src.sizes == index.sizes or not index.rank:
        return src
    axes = list(range(index.rank))
    return op.Slice(src, op.ints(*[0] * len(axes)), op.shape(index.known_sizes), op.ints(*axes))


def _scattered(op: Builder, self: Tensor, dim: int, index: Tensor, updates: Tensor, reduction: str) -> Tensor:
    if not self.rank:
        one = [op.reshape(x, (1,)) for x in (self, index, op.cast(updates, self.element))]
        return op.reshape(op.ScatterElements(*one, axis=0, reduction=reduction), ())
    if reduction != "none" and (wide := REDUCED_IN.get(self.element)) is not None:
        narrow, wider = self.element, [op.cast(x, wide) for x in (self, updates)]
        return op.cast(_scattered(op, wider[0], dim, index, wider[1], reduction), narrow)
    if not index.rank:
        index, updates = op.reshape(index, (1,)), op.Reshape(updates, op.ints(1))
    out = op.ScatterElements(
        self,
        op.cast(index, INT64),
        op.cast(updates, self.element),
        axis=axis_of(dim, self.rank),
        reduction=None if reduction == "none" else reduction,
    )
    out.settle(self.known_sizes)
    return out


@op("aten::index_add")
def index_add(
    op: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: int | float | Number = 1
) -> Tensor:
    """index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"""
    if isinstance(alpha, Number) or alpha != 1:
        sizes, source = source.known_sizes, op.Mul(source, alpha)
        source.settle(sizes)
    return _rows(op, self, dim, index, source, "add")


@op("aten::index_reduce")
def index_reduce(
    op: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)"""
    if not self.rank:
        data, places, values = (op.reshape(x, (1,)) for x in (self, index, source))
        return op.reshape(scatter_reduce(op, data, 0, places, values, reduce, include_self=include_self), ())
    axis = axis_of(dim, self.rank)
    lined_up = op.reshape(index, [index.known_sizes[0] if i == axis else 1 for i in range(self.rank)])
    everywhere = op.expand(lined_up, source.known_sizes)
    return scatter_reduce(op, self, dim, everywhere, source, reduce, include_self=include_self)


@op("aten::put")
def put(op: Builder, self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor; as if it had one axis only"""
    flat, places, values = (op.reshape(x, (count(x.known_sizes),)) for x in (self, index, source))
    written = _scatter_nd(op, flat, op.Unsqueeze(places, op.ints(-1)), op.cast(values, self.element), accumulate)
    written.sizes = flat.sizes
    return op.reshape(written, self.known_sizes)


@op("aten::index_copy")
def index_copy(op: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"""
    return _rows(op, self, dim, index, source, "none")


@op("aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor")
def index_fill(op: Builder, self: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"""
    sizes = list(self.known_sizes)
    if sizes:
        sizes[axis_of(dim, self.rank)] = index.known_sizes[0] if index.rank else 1
    rows = op.expand(op.reshape(op.scalar(value, self.element), ()), sizes)
    return _rows(op, self, dim, index, rows, "none")


def _rows(op: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str) -> Tensor:
    source = op.cast(source, self.element)
    places = op.reshape(index, (1,)) if not index.rank else index
    if not self.rank:
        written = put_rows(op, op.reshape(self, (1,)), op.cast(places, INT64), op.reshape(source, (1,)), 0, reduction)
        return op.reshape(written, ())
    return put_rows(op, self, op.cast(places, INT64), source, axis_of(dim, self.rank), reduction)


@op("aten::bincount")
def bincount(op: Builder, self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"""
    dtype = op.result.dtype
    index = op.cast(self, ir.DataType.INT64)
    past_the_last = op.Add(op.ReduceMax(op.Concat(index, op.ints(-1), axis=0), keepdims=0), 1)
    size = op.Reshape(op.Max(past_the_last, op.scalar(minlength, ir.DataType.INT64)), op.ints(1))
    none = op.Expand(op.const(0, dtype), size)
    if weights is None:
        added = op.Expand(op.const(1, dtype), op.Shape(index))
    else:
        added = op.cast(weights, dtype)
    return op.ScatterElements(none, index, added, axis=0, reduction="add")
