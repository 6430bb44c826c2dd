"""Taking tensors apart along an axis and putting them together."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import sympy

from trueport.graph.regions import Number, Size, Value
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import LAST, axis_of, count, from_front, size_of, slice_axis, to_front
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

AnySize = int | Number
INT64 = ir.DataType.INT64


@op("aten::cat", "aten::concat", "aten::concatenate")
def cat(op: Builder, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """cat(Tensor[] tensors, int dim=0) -> Tensor; tensors of shape (0,) join anything, in eager, and add nothing."""
    rank = len(op.result.shape)
    parts = [op.cast(x, op.result.dtype) for x in tensors if rank == 1 or x.sizes != (0,)]
    if len(parts) == 1:
        return parts[0]
    return op.Concat(*parts, axis=axis_of(dim, rank))


@op("aten::stack")
def stack(op: Builder, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """stack(Tensor[] tensors, int dim=0) -> Tensor"""
    axis = axis_of(dim, len(op.result.shape))
    parts = [op.Unsqueeze(op.cast(x, op.result.dtype), op.ints(axis)) for x in tensors]
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=axis)


@op(
    "aten::split.Tensor",
    "aten::split_with_sizes",
    "aten::split.sizes",
    "aten::unsafe_split.Tensor",
    "aten::unsafe_split_with_sizes",
    "aten::chunk",
    "aten::unsafe_chunk",
    "aten::tensor_split.sections",
    "aten::split_copy.Tensor",
    "aten::split_with_sizes_copy",
)
def split(op: Builder, self: Tensor, split_size: object, dim: int = 0) -> Sequence[Tensor]:
    """split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"""
    axis = axis_of(dim, self.rank)
    if isinstance(split_size, list):
        lengths: list[Size] = [size_of(size) for size in split_size]
    else:
        lengths = [value.shape[axis] for value in _results(op)]
    if len(lengths) == 1:
        return (self,)
    return op.many("Split", len(lengths), self, op.shape(lengths), axis=axis)


@op("aten::unbind.int", "aten::unbind_copy.int")
def unbind(op: Builder, self: Tensor, dim: int = 0) -> Sequence[Tensor]:
    """unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"""
    axis = axis_of(dim, self.rank)
    return [op.Gather(self, op.const(i), axis=axis) for i in range(len(_results(op)))]


def _results(op: Builder) -> list[Value]:
    return [value for value in (op.node.outputs if op.node else ()) if isinstance(value, Value)]


@op("aten::select.int", "aten::select_copy.int")
def select(op: Builder, self: Tensor, dim: int, index: AnySize) -> Tensor:
    """select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"""
    return op.Gather(self, op.size(index), axis=axis_of(dim, self.rank))


@op("aten::slice.Tensor", "aten::slice_copy.Tensor")
def slice_(
    op: Builder,
    self: Tensor,
    dim: int = 0,
    start: AnySize | None = None,
    end: AnySize | None = None,
    step: AnySize = 1,
) -> Tensor:
    """slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)"""
    axis = axis_of(dim, self.rank)
    if step == 1 and op.result.shape[axis] == self.known_sizes[axis]:
        return self
    bounds = op.shape([start or 0]), op.shape([LAST if end is None else end])
    return op.Slice(self, *bounds, op.ints(axis), None if step == 1 else op.shape([step]))


@op("aten::narrow", "aten::narrow_copy")
def narrow(op: Builder, self: Tensor, dim: int, start: AnySize, length: AnySize) -> Tensor:
    """narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"""
    axis = axis_of(dim, self.rank)
    first = size_of(start)
    if isinstance(first, int) and first < 0:
        first = self.known_sizes[axis] + first
    return slice_axis(op, self, axis, first, first + size_of(length))


@op("aten::slice_scatter")
def slice_scatter(
    op: Builder,
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: AnySize | None = None,
    end: AnySize | None = None,
    step: AnySize = 1,
) -> Tensor:
    """slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor

    What lies before, the new part, what lies after; or row by row where the slice has steps or a start of unknown sign.
    """
    axis = axis_of(dim, self.rank)
    src = op.cast(src, self.element)
    length = self.known_sizes[axis]
    if step == 1 and src.known_sizes[axis] == length:
        return src
    first = size_of(start or 0)
    if isinstance(first, int) and first < 0 and isinstance(length, int):
        first = max(0, length + first)
    if step == 1 and (first >= 0 if isinstance(first, int) else op.sizes.is_natural(first)):
        return _replaced(op, self, src, axis, first, first + src.known_sizes[axis])
    bounds = op.shape([first]), op.shape([LAST if end is None else end])
    rows = op.Slice(op.range(length), *bounds, op.ints(0), op.shape([step]))
    return put_rows(op, self, rows, src, axis)


@op("aten::select_scatter")
def select_scatter(op: Builder, self: Tensor, src: Tensor, dim: int, index: AnySize) -> Tensor:
    """select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"""
    axis = axis_of(dim, self.rank)
    row = op.Unsqueeze(op.cast(src, self.element), op.ints(axis))
    row.settle((*src.known_sizes[:axis], 1, *src.known_sizes[axis:]))
    first, length = size_of(index), self.known_sizes[axis]
    if isinstance(first, int) and first < 0 and isinstance(length, int):
        first = length + first
    if first >= 0 if isinstance(first, int) else op.sizes.is_natural(first):
        return _replaced(op, self, row, axis, first, first + 1)
    return put_rows(op, self, op.shape([first]), row, axis)


def _replaced(op: Builder, self: Tensor, part: Tensor, axis: int, start: Size, end: Size) -> Tensor:
    """`self` with `part` in the place of start..end. Known to be at an edge, that side has nothing to keep."""
    parts = [part]
    if start != 0:
        parts.insert(0, slice_axis(op, self, axis, 0, start))
    if end != self.known_sizes[axis]:
        parts.append(slice_axis(op, self, axis, end, LAST))
    return part if len(parts) == 1 else op.Concat(*parts, axis=axis)


REDUCED_IN = {
    ir.DataType.BOOL: ir.DataType.INT32,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
}
"""Dtypes in which the runtime's scatters write, but do not reduce."""


def put_rows(op: Builder, self: Tensor, rows: Tensor, src: Tensor, axis: int, reduction: str = "none") -> Tensor:
    """`self` with the rows of `src` written at the positions `rows` (1-d) of an axis."""
    if reduction != "none" and (wide := REDUCED_IN.get(self.element)) is not None:
        return op.cast(put_rows(op, op.cast(self, wide), rows, op.cast(src, wide), axis, reduction), self.element)
    if reduction != "none":  # ScatterND would lose rows that meet in one place (faulty_kernels.py)
        places = op.Reshape(rows, op.ints(*(-1 if each == axis else 1 for each in range(self.rank))))
        added = op.ScatterElements(self, op.Expand(places, op.Shape(src)), src, axis=axis, reduction=reduction)
        added.settle(self.known_sizes)
        return added
    data, updates = to_front(op, self, axis), to_front(op, src, axis)
    written = op.ScatterND(data, op.Unsqueeze(rows, op.ints(-1)), updates)
    written.settle(data.known_sizes)
    return from_front(op, written, axis)


@op("aten::diagonal", "aten::diagonal_copy")
def diagonal(op: Builder, self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"""
    flat, positions = _diagonal(op, self, offset, dim1, dim2)
    return op.Gather(flat, positions, axis=flat.rank - 1)


@op("aten::diagonal_scatter")
def diagonal_scatter(op: Builder, self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"""
    flat, positions = _diagonal(op, self, offset, dim1, dim2, length=src.known_sizes[-1])
    written = put_rows(op, flat, positions, op.cast(src, self.element), flat.rank - 1)
    first, second = axis_of(dim1, self.rank), axis_of(dim2, self.rank)
    order = [*(a for a in range(self.rank) if a not in (first, second)), first, second]
    square = op.reshape(written, [self.known_sizes[axis] for axis in order])
    return op.transpose(square, [order.index(axis) for axis in range(self.rank)])


def _diagonal(
    op: Builder, self: Tensor, offset: int, dim1: int, dim2: int, length: Size | None = None
) -> tuple[Tensor, Tensor]:
    """The two axes as one at the end, and where the diagonal lies on it."""
    first, second = axis_of(dim1, self.rank), axis_of(dim2, self.rank)
    rest = [axis for axis in range(self.rank) if axis not in (first, second)]
    height, width = self.known_sizes[first], self.known_sizes[second]
    last = op.transpose(self, [*rest, first, second])
    flat = op.reshape(last, [*(self.known_sizes[axis] for axis in rest), height * width])
    start = offset if offset >= 0 else -offset * width
    steps = op.range(op.result.shape[-1] if length is None else length)
    return flat, op.Add(op.Mul(steps, op.size(_expr(width) + 1)), op.size(_expr(start)))


def _expr(size: Size) -> sympy.Expr:
    return sympy.Integer(size) if isinstance(size, int) else size


@op("aten::unfold", "aten::unfold_copy")
def unfold(op: Builder, self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"""
    if not self.rank:
        return op.reshape(self, (size,))
    axis = axis_of(dimension, self.rank)
    starts = op.Mul(op.range(op.result.shape[axis]), op.const(step))
    within = op.range(size)
    windows = op.Gather(self, op.Add(op.Unsqueeze(starts, op.ints(1)), within), axis=axis)
    return op.transpose(windows, [*range(axis + 1), *range(axis + 2, self.rank + 1), axis + 1])


@op("aten::roll")
def roll(op: Builder, self: Tensor, shifts: Sequence[AnySize], dims: Sequence[int] = ()) -> Tensor:
    """roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"""
    if not self.rank:
        return self
    if not dims:
        flat = _rolled(op, op.reshape(self, (count(self.known_sizes),)), shifts[0], 0)
        return op.reshape(flat, self.known_sizes)
    for shift, dim in zip(shifts, dims, strict=True):
        self = _rolled(op, self, shift, axis_of(dim, self.rank))
    return self


def _rolled(op: Builder, x: Tensor, shift: AnySize, axis: int) -> Tensor:
    """By slices where both numbers are known; else by computed positions, which also suits an empty axis."""
    length, sizes = x.known_sizes[axis], x.known_sizes
    if isinstance(length, int) and isinstance(shift, int):
        start = -shift % length if length else 0
        if not start:
            return x
        out = op.Concat(slice_axis(op, x, axis, start, LAST), slice_axis(op, x, axis, 0, start), axis=axis)
    else:
        # The runtime refuses to divide by zero even where there is nothing to divide.
        positions = op.Mod(op.Sub(op.range(length), op.size(shift)), op.Max(op.size(length), 1))
        out = op.Gather(x, positions, axis=axis)
    out.settle(sizes)
    return out


@op("aten::repeat_interleave.Tensor")
def repeat_interleave(op: Builder, repeats: Tensor, *, output_size: AnySize | None = None) -> Tensor:
    """repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor"""
    return op.cast(_owners(op, op.cast(repeats, INT64)), op.result.dtype)


def _owners(op: Builder, repeats: Tensor) -> Tensor:
    """For each position of the repetition, which element it repeats: the number of elements whose repetitions end at
    or before it. Mark the ends, sum them up."""
    ends = op.CumSum(repeats, op.const(0))
    total = op.ReduceSum(repeats, op.ints(0))
    nothing = op.Expand(op.const(0), op.Add(total, 1))
    ones = op.Expand(op.const(1), op.Shape(ends))
    marked = op.ScatterElements(nothing, ends, ones, axis=0, reduction="add")
    return op.Slice(op.CumSum(marked, op.const(0)), op.ints(0), op.ints(-1), op.ints(0))


@op("aten::repeat_interleave.self_Tensor")
def repeat_interleave_each(
    op: Builder, self: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: AnySize | None = None
) -> Tensor:
    """repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor

    One number of repeats serves every element; a free size may turn out to be that one.
    """
    if dim is None:
        self, dim = op.reshape(self, (count(self.known_sizes),)), 0
    axis = axis_of(dim, self.rank)
    each = op.Expand(op.cast(repeats, INT64), op.shape([self.known_sizes[axis]]))
    return op.Gather(self, _owners(op, each), axis=axis)


@op("aten::repeat_interleave.self_int")
def repeat_interleave_int(
    op: Builder, self: Tensor, repeats: AnySize, dim: int | None = None, *, output_size: AnySize | None = None
) -> Tensor:
    """repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor"""
    if dim is None:
        self, dim = op.reshape(self, (count(self.known_sizes),)), 0
    axis, sizes = axis_of(dim, self.rank), self.known_sizes
    wide = op.reshape(self, [*sizes[: axis + 1], 1, *sizes[axis + 1 :]])
    wide = op.expand(wide, [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]])
    return op.reshape(wide, [*sizes[:axis], sizes[axis] * size_of(repeats), *sizes[axis + 1 :]])
