"""Operators that reduce axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.nan import may_be_nan
from trueport.lower.ops.axes import axes_of, axis_of, broadcast, count
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

Axes = Sequence[int] | int | None
INT64, BOOL = ir.DataType.INT64, ir.DataType.BOOL


def reduced(op: Builder, name: str, x: Tensor, dim: Axes, keepdim: bool) -> Tensor:
    """One of ONNX's reductions, over the axes that eager means."""
    if not x.rank:
        return x
    axes = axes_of(dim, x.rank)
    result: Tensor = getattr(op, name)(x, op.ints(*axes), keepdims=int(keepdim))
    return result


@op("aten::sum", "aten::sum.dim_IntList")
def sum_(
    op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    return _total(op, self, op.cast(self, op.result.dtype), dim, keepdim)


def _total(op: Builder, before: Tensor, x: Tensor, dim: Axes, keepdim: bool) -> Tensor:
    """The sum of x, which is `before` in the dtype of the result.

    The runtime adds integers in double (faulty_kernels.py). That is exact for counts and for what has at most 16 bits;
    wider ones are multiplied by ones.
    """
    if before.element.is_floating_point() or before.element.itemsize <= 2 or not x.rank:
        return reduced(op, "ReduceSum", x, dim, keepdim)
    rows, length = _in_rows(op, x, dim)
    ones = op.expand(op.const(1, x.element), (length, 1))
    return op.reshape(op.MatMul(rows, ones), op.result.shape)


def _in_rows(op: Builder, x: Tensor, dim: Axes) -> tuple[Tensor, Size]:
    """What is reduced laid out as the last of two axes, and how much that is."""
    axes = axes_of(dim, x.rank)
    kept = [axis for axis in range(x.rank) if axis not in axes]
    length, lines = (count([x.known_sizes[axis] for axis in group]) for group in (axes, kept))
    return op.reshape(op.transpose(x, [*kept, *axes]), (lines, length)), length


@op("aten::nansum")
def nansum(
    op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    x = op.cast(self, op.result.dtype)
    if x.element.is_floating_point():
        sizes, x = x.known_sizes, op.Where(op.IsNaN(x), op.const(0, x.element), x)
        x.settle(sizes)
    return _total(op, self, x, dim, keepdim)


@op("aten::mean", "aten::mean.dim")
def mean(
    op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    return _mean(op, op.cast(self, op.result.dtype), dim, keepdim)


def _mean(op: Builder, x: Tensor, dim: Axes, keepdim: bool) -> Tensor:
    if not x.rank:
        return x
    number = count([x.known_sizes[axis] for axis in axes_of(dim, x.rank)])
    if op.sizes.is_positive(number):
        return reduced(op, "ReduceMean", x, dim, keepdim)
    # Of nothing, eager gives 0/0; the runtime's ReduceMean gives 0.
    return op.Div(reduced(op, "ReduceSum", x, dim, keepdim), op.scalar(_number(number), x.element))


def _number(size: Size) -> int | Number:
    return size if isinstance(size, int) else Number(size, int)


@op("aten::prod", "aten::prod.dim_int")
def prod(
    op: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    x = op.cast(self, op.result.dtype)
    if x.element.is_floating_point() or self.dtype == BOOL or not x.rank:
        return reduced(op, "ReduceProd", x, dim, keepdim)
    rows, _ = _in_rows(op, x, dim)  # the runtime multiplies integers in double (faulty_kernels.py)
    start = op.expand(op.const(1, x.element), (rows.known_sizes[0], 1))
    nowhere = op.expand(op.const(0, INT64), rows.known_sizes)
    return op.reshape(op.ScatterElements(start, nowhere, rows, axis=1, reduction="mul"), op.result.shape)


@op("aten::amax")
def amax(op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"""
    return _extreme(op, "ReduceMax", self, dim, keepdim)


@op("aten::amin")
def amin(op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"""
    return _extreme(op, "ReduceMin", self, dim, keepdim)


@op("aten::aminmax")
def aminmax(op: Builder, self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Sequence[Tensor]:
    """aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"""
    return amin(op, self, dim, keepdim), amax(op, self, dim, keepdim)


@op("aten::max")
def max_(op: Builder, self: Tensor) -> Tensor:
    """max(Tensor self) -> Tensor"""
    return _extreme(op, "ReduceMax", self, None, False)


@op("aten::min")
def min_(op: Builder, self: Tensor) -> Tensor:
    """min(Tensor self) -> Tensor"""
    return _extreme(op, "ReduceMin", self, None, False)


@op("aten::max.dim")
def max_dim(op: Builder, self: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    """max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"""
    return _extreme(op, "ReduceMax", self, dim, keepdim), _position(op, "ArgMax", self, dim, keepdim)


@op("aten::min.dim")
def min_dim(op: Builder, self: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    """min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"""
    return _extreme(op, "ReduceMin", self, dim, keepdim), _position(op, "ArgMin", self, dim, keepdim)


@op("aten::argmax")
def argmax(op: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"""
    return _position(op, "ArgMax", self, dim, keepdim)


@op("aten::argmin")
def argmin(op: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"""
    return _position(op, "ArgMin", self, dim, keepdim)


def _extreme(op: Builder, name: str, self: Tensor, dim: Axes, keepdim: bool) -> Tensor:
    """NaN wins over every number, in eager; the runtime passes over it."""
    if self.dtype == BOOL:
        return op.cast(reduced(op, name, op.cast(self, ir.DataType.INT32), dim, keepdim), BOOL)
    found = reduced(op, name, self, dim, keepdim)
    if not (self.rank and self.element.is_floating_point() and may_be_nan(self)):
        return found
    any_nan = op.cast(reduced(op, "ReduceMax", _is_nan(op, self), dim, keepdim), BOOL)
    return op.Where(any_nan, op.const(float("nan"), self.element), found)


def _is_nan(op: Builder, self: Tensor) -> Tensor:
    found = op.cast(op.IsNaN(self), ir.DataType.UINT8)
    found.settle(self.sizes)
    return found


def nan_along(op: Builder, self: Tensor, axis: int, keepdims: int) -> tuple[Tensor, Tensor]:
    """Whether there is a NaN along an axis, and where the first one is."""
    is_nan = _is_nan(op, self)
    any_nan = op.cast(op.ReduceMax(is_nan, op.ints(axis), keepdims=keepdims), BOOL)
    return any_nan, op.ArgMax(is_nan, axis=axis, keepdims=keepdims)


def _position(op: Builder, name: str, self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if not self.rank:
        return op.const(0, INT64)
    if self.dtype == BOOL:
        self = op.cast(self, ir.DataType.INT32)
    if dim is None:
        flat = op.reshape(self, (count(self.known_sizes),))
        return op.reshape(_place(op, name, flat, 0, 0), op.result.shape)
    return _place(op, name, self, axis_of(dim, self.rank), int(keepdim))


def _place(op: Builder, name: str, self: Tensor, axis: int, keepdims: int) -> Tensor:
    """Of the first NaN, where there is one."""
    found: Tensor = getattr(op, name)(self, axis=axis, keepdims=keepdims)
    if not (self.element.is_floating_point() and may_be_nan(self)):
        return found
    any_nan, first = nan_along(op, self, axis, keepdims)
    return op.Where(any_nan, first, found)


@op("aten::any", "aten::any.dim", "aten::any.dims")
def any_(op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor; by counting, so that nothing gives False"""
    return op.cast(reduced(op, "ReduceSum", _ones_where(op, self, True), dim, keepdim), BOOL)


@op("aten::all", "aten::all.dim", "aten::all.dims")
def all_(op: Builder, self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor; by counting, so that nothing gives True"""
    return op.Not(op.cast(reduced(op, "ReduceSum", _ones_where(op, self, False), dim, keepdim), BOOL))


@op("aten::count_nonzero", "aten::count_nonzero.dim_IntList")
def count_nonzero(op: Builder, self: Tensor, dim: Axes = None) -> Tensor:
    """count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"""
    return reduced(op, "ReduceSum", _ones_where(op, self, True), dim, False)


def _ones_where(op: Builder, self: Tensor, truth: bool) -> Tensor:
    found = op.cast(self, BOOL)
    ones = op.cast(found if truth else op.Not(found), INT64)
    ones.sizes = self.sizes
    return ones


@op("aten::logsumexp")
def logsumexp(op: Builder, self: Tensor, dim: Axes, keepdim: bool = False) -> Tensor:
    """logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"""
    return reduced(op, "ReduceLogSumExp", op.cast(self, op.result.dtype), dim, keepdim)


# Spread


def variance(op: Builder, self: Tensor, dim: Axes, correction: Operand, keepdim: bool) -> tuple[Tensor, Tensor]:
    """(variance, mean). Eager divides by the count less the correction, but never by less than nothing."""
    axes = axes_of(dim, self.rank)
    middle = _mean(op, self, axes, True)
    apart = op.Sub(self, middle)
    apart.sizes = self.sizes
    squares = op.Mul(apart, apart)
    squares.sizes = self.sizes
    total = reduced(op, "ReduceSum", squares, axes, keepdim)
    number = count([self.known_sizes[axis] for axis in axes])
    minus = 1 if correction is None else correction
    if isinstance(number, int) and isinstance(minus, int | float):
        divisor = op.const(float(max(0, number - minus)), self.element)
    else:
        less = op.Sub(op.scalar(_number(number), self.element), op.scalar(minus, self.element))
        divisor = op.Max(less, 0)
    shown = middle if keepdim or not self.rank else op.Squeeze(middle, op.ints(*axes))
    return op.Div(total, divisor), shown


@op("aten::var.correction")
def var(op: Builder, self: Tensor, dim: Axes = None, *, correction: Operand = None, keepdim: bool = False) -> Tensor:
    """var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"""
    return variance(op, self, dim, correction, keepdim)[0]


@op("aten::std.correction")
def std(op: Builder, self: Tensor, dim: Axes = None, *, correction: Operand = None, keepdim: bool = False) -> Tensor:
    """std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"""
    return op.Sqrt(variance(op, self, dim, correction, keepdim)[0])


@op("aten::var_mean.correction")
def var_mean(
    op: Builder, self: Tensor, dim: Axes = None, *, correction: Operand = None, keepdim: bool = False
) -> Sequence[Tensor]:
    """var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)"""
    return variance(op, self, dim, correction, keepdim)


@op("aten::std_mean.correction")
def std_mean(
    op: Builder, self: Tensor, dim: Axes = None, *, correction: Operand = None, keepdim: bool = False
) -> Sequence[Tensor]:
    """std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)"""
    spread, middle = variance(op, self, dim, correction, keepdim)
    return op.Sqrt(spread), middle


# Norms


@op("aten::linalg_vector_norm")
def vector_norm(
    op: Builder,
    self: Tensor,
    ord: float = 2,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"""
    x = op.cast(self, op.result.dtype)
    if not x.rank and ord == 0:
        return op.cast(op.Not(op.Equal(x, 0)), x.element)
    if not x.rank and (not dim or ord == 2):  # along its axis, eager raises a single number to the power, too
        return op.Abs(x)
    if ord == 2:
        return reduced(op, "ReduceL2", x, dim, keepdim)
    size = op.Abs(x)
    if ord == 0:
        size = op.cast(op.Not(op.Equal(x, 0)), x.element)
    elif not math.isinf(ord) and ord != 1:
        size = op.Pow(size, float(ord))
    size.sizes = x.sizes
    name = "ReduceSum" if not math.isinf(ord) else "ReduceMax" if ord > 0 else "ReduceMin"
    total = reduced(op, name, size, dim, keepdim)
    return total if ord in (0, 1) or math.isinf(ord) else op.Pow(total, 1 / ord)


@op("aten::norm.Scalar", "aten::norm.ScalarOpt_dim", "aten::norm.ScalarOpt_dtype", "aten::norm.ScalarOpt_dim_dtype")
def norm(
    op: Builder,
    self: Tensor,
    p: float | None = 2,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor"""
    return vector_norm(op, self, 2 if p is None else p, dim, keepdim)


@op("aten::_cdist_forward")
def cdist(op: Builder, x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor; the norms of all differences"""
    apart = op.Sub(op.Unsqueeze(x1, op.ints(-2)), op.Unsqueeze(x2, op.ints(-3)))
    apart.sizes = (*op.result.shape, x1.known_sizes[-1])
    return vector_norm(op, apart, p, -1)


@op("aten::dist")
def dist(op: Builder, self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """dist(Tensor self, Tensor other, Scalar p=2) -> Tensor"""
    apart = op.Sub(self, other)
    apart.sizes = broadcast(self.known_sizes, other.known_sizes)
    return vector_norm(op, apart, p)
