"""LU of complex matrices, as LAPACK gives it: the loop of `linalg/lu.py`, on two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.loops import loop
from trueport.lower.ops.axes import count, slice_axis
from trueport.lower.ops.complex.linalg import batch_of
from trueport.lower.ops.complex.matrices import ComplexParts, div, joined, mul, parts, sub, where
from trueport.lower.ops.linalg.lu import order_of, permutation
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    INT64,
    lower_part,
    rows_in_order,
    sized,
    smaller,
    upper_part,
    with_unit_diagonal,
)
from trueport.lower.tensor import Tensor


@dataclass(frozen=True)
class _Eliminated:
    """As in `linalg/lu.py`; `sign` is that of the determinant, and `log` the logarithm of its size, [batch, 1] each."""

    lu: ComplexParts
    order: Tensor
    swaps: Tensor
    info: Tensor
    sign: ComplexParts
    log: Tensor


def _eliminated(op: Builder, a: ComplexParts) -> _Eliminated:
    """LU with the pivots of LAPACK, the first with the largest sum of the sizes of its parts."""
    batch, rows, columns = a.real.known_sizes
    steps = smaller(rows, columns)
    places, lanes, step_places = op.range(rows), op.range(columns), op.range(steps)
    order = op.expand(places, (batch, rows))
    waiting = op.expand(op.const([[True]]), (batch, rows))
    swaps = op.expand(op.const([[0]], INT64), (batch, steps))
    info, zero, one = (op.expand(op.const([[x]]), (batch, 1)) for x in (0, 0.0, 1.0))
    zero, one = op.cast(zero, DOUBLE), op.cast(one, DOUBLE)

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        real, imaginary, order, waiting, swaps, info, sign_real, sign_imaginary, log = states
        a, sign = ComplexParts(real, imaginary), ComplexParts(sign_real, sign_imaginary)
        column = a.each(lambda x: op.Gather(x, k, axis=2))
        size = op.GatherElements(op.Add(op.Abs(column.real), op.Abs(column.imaginary)), order, axis=1)
        place = op.ArgMax(op.Where(op.GreaterOrEqual(places, k), size, op.const(-1.0, DOUBLE)), axis=1, keepdims=1)
        row = op.GatherElements(order, place, axis=1)
        displaced = op.Gather(order, op.Reshape(k, op.ints(1)), axis=1)
        order = op.Where(op.Equal(places, k), row, op.Where(op.Equal(places, place), displaced, order))
        waiting = op.And(waiting, op.Not(op.Equal(places, row)))
        pivots = a.each(lambda x: op.Unsqueeze(op.GatherND(x, row, batch_dims=1), op.ints(1)))
        pivot = pivots.each(lambda x: op.Gather(x, k, axis=2))
        length = op.Sqrt(op.Add(op.Mul(pivot.real, pivot.real), op.Mul(pivot.imaginary, pivot.imaginary)))
        nothing = op.Equal(length, 0)
        shares = div(op, column, pivot).each(lambda x: op.Unsqueeze(x, op.ints(2)))
        reduced = where(op, op.Greater(lanes, k), sub(op, a, mul(op, shares, pivots)), a)
        reduced = where(op, op.Equal(lanes, k), shares, reduced)
        a = where(op, op.Unsqueeze(waiting, op.ints(2)), reduced, a)
        swaps = op.Where(op.Equal(step_places, k), op.Add(place, 1), swaps)
        info = op.Where(op.And(nothing, op.Equal(info, 0)), op.Add(k, 1), info)
        turned = div(op, pivot, ComplexParts(length, op.Mul(length, 0)))
        stayed = op.Equal(place, k)
        turned = turned.each(lambda x: op.Where(stayed, x, op.Neg(x)))
        sign = mul(op, sign, turned)
        log = op.Add(log, op.Log(length))
        return [a.real, a.imaginary, order, waiting, swaps, info, sign.real, sign.imaginary, log]

    states = [a.real, a.imaginary, order, waiting, swaps, info, one, zero, zero]
    real, imaginary, order, _, swaps, info, *rest = loop(op, op.size(steps), states, body)
    lu = ComplexParts(real, imaginary).each(lambda x: rows_in_order(op, x, order))
    return _Eliminated(lu, order, swaps, info, ComplexParts(rest[0], rest[1]), rest[2])


@complex_op("aten::linalg_lu_factor_ex")
def lu_factor_ex(op: Builder, A: Complex, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)
    -> (Tensor LU, Tensor pivots, Tensor info)
    """
    batch = batch_of(A)
    found = _eliminated(op, parts(op, A))
    swaps = op.reshape(found.swaps, (*batch, found.swaps.known_sizes[1]))
    return joined(op, found.lu, batch), op.cast(swaps, INT32), op.cast(op.reshape(found.info, batch), INT32)


def _both(op: Builder, lu: ComplexParts) -> tuple[ComplexParts, ComplexParts]:
    """The factors: [rows, least] with a diagonal of ones, and [least, columns]."""
    batch, rows, columns = lu.real.known_sizes
    least = smaller(rows, columns)
    left = lu.each(lambda x: lower_part(op, sized(slice_axis(op, x, 2, 0, least), batch, rows, least), -1))
    right = lu.each(lambda x: upper_part(op, sized(slice_axis(op, x, 1, 0, least), batch, least, columns)))
    return ComplexParts(with_unit_diagonal(op, left.real), left.imaginary), right


@complex_op("aten::linalg_lu")
def lu(op: Builder, A: Complex, *, pivot: bool = True) -> Any:
    """linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"""
    batch = batch_of(A)
    found = _eliminated(op, parts(op, A))
    left, right = _both(op, found.lu)
    rows = permutation(op, found.order)
    return joined(op, ComplexParts(rows, _zeros(op, rows)), batch), joined(op, left, batch), joined(op, right, batch)


def _zeros(op: Builder, like: Tensor) -> Tensor:
    return sized(op.Mul(like, 0), *like.known_sizes)


@complex_op("aten::lu_unpack")
def lu_unpack(
    op: Builder, LU_data: Complex, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)
    -> (Tensor P, Tensor L, Tensor U)
    """
    batch, rows = batch_of(LU_data), LU_data.pairs.known_sizes[-3]
    nothing = Complex(sized(op.expand(op.const([[0.0]], LU_data.pairs.element), (0, 2)), 0, 2))
    exchanged, left, right = nothing, nothing, nothing
    if unpack_data:
        left, right = (joined(op, part, batch) for part in _both(op, parts(op, LU_data)))
    if unpack_pivots:
        pivots = op.reshape(LU_pivots, (count(batch), LU_pivots.known_sizes[-1]))
        real = permutation(op, order_of(op, pivots, rows))
        exchanged = joined(op, ComplexParts(real, _zeros(op, real)), batch)
    return exchanged, left, right


@complex_op("aten::linalg_det", "aten::det", "aten::_linalg_det")
def det(op: Builder, self: Complex) -> Any:
    """_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"""
    batch = batch_of(self)
    found = _eliminated(op, parts(op, self))
    size = op.Exp(found.log)
    result = _scalars(op, found.sign.each(lambda x: op.Mul(x, size)), batch)
    return result if op.node is None or len(op.node.outputs) == 1 else (result, None, None)


@complex_op("aten::_linalg_slogdet")
def slogdet(op: Builder, A: Complex) -> Any:
    """_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"""
    batch = batch_of(A)
    found = _eliminated(op, parts(op, A))
    return _scalars(op, found.sign, batch), op.reshape(found.log, batch), None, None


def _scalars(op: Builder, x: ComplexParts, batch: tuple[Size, ...]) -> Complex:
    """One number for each matrix, from [batch, 1]."""
    flat = x.each(lambda part: op.reshape(sized(part, count(batch), 1), batch))
    return Complex.joined(op, flat.real, flat.imaginary)
