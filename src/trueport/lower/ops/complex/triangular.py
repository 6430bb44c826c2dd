"""Triangular systems of complex matrices, and Cholesky's factor of them: `linalg/triangular.py` on two parts.

A zero on the diagonal divides as it does in LAPACK, so that what cannot be solved is NaN there too.
"""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.loops import loop
from trueport.lower.ops.axes import broadcast, count
from trueport.lower.ops.complex.linalg import batch_of
from trueport.lower.ops.complex.matrices import ComplexParts, adjoint, joined, matmul, mul, parts, sub, where
from trueport.lower.ops.linalg.lu import order_of
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    INT64,
    down,
    identities,
    identity,
    inverse_order,
    lower_part,
    rows_in_order,
    sized,
    upper_part,
    where_row_is,
)
from trueport.lower.ops.linalg.triangular import untouched
from trueport.lower.tensor import Tensor


def substituted(op: Builder, a: ComplexParts, b: ComplexParts, *, upper: bool, unit: bool) -> ComplexParts:
    """x of a @ x = b; the other triangle of `a` is not looked at. [batch, n, n] and [batch, n, k]"""
    batch, n, columns = b.real.known_sizes
    beside = a.each(lambda x: upper_part(op, x, 1) if upper else lower_part(op, x, -1))
    nothing = op.expand(op.const([[[0.0]]], DOUBLE), (batch, n, columns))

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        x = ComplexParts(*states)
        k = op.Sub(op.Sub(op.size(n), 1), i) if upper else i
        at = op.Reshape(k, op.ints(1))
        row = sub(op, b.each(lambda y: op.Gather(y, at, axis=1)), matmul(op, _rows(op, beside, at), x))
        if not unit:
            row = _divided(op, row, _rows(op, a, at).each(lambda y: op.Gather(y, at, axis=2)))
        x = where(op, where_row_is(op, n, k), row, x)
        return [x.real, x.imaginary]

    return ComplexParts(*loop(op, op.size(n), [nothing, nothing], body))


def _rows(op: Builder, a: ComplexParts, at: Tensor) -> ComplexParts:
    return a.each(lambda x: op.Gather(x, at, axis=1))


def _divided(op: Builder, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """NaN where the divisor is zero, in both parts."""
    square = op.Add(op.Mul(b.real, b.real), op.Mul(b.imaginary, b.imaginary))
    return mul(op, a, ComplexParts(b.real, op.Neg(b.imaginary))).each(lambda x: op.Div(x, square))


def _flipped(op: Builder, a: ComplexParts, conjugate: bool = False) -> ComplexParts:
    """The transposed matrices, or the adjoint ones."""
    batch, rows, columns = a.real.known_sizes
    turned = adjoint(op, a).each(lambda x: sized(x, batch, columns, rows))
    return turned if conjugate else ComplexParts(turned.real, sized(op.Neg(turned.imaginary), batch, columns, rows))


def _together(op: Builder, a: Complex, b: Complex) -> tuple[tuple[Size, ...], ComplexParts, ComplexParts]:
    """The batch that both are broadcast to, and both in it."""
    batch = broadcast(batch_of(a), batch_of(b))
    one, other = (parts(op, Complex(op.expand(z.pairs, (*batch, *z.pairs.known_sizes[-3:])))) for z in (a, b))
    return batch, one, other


@complex_op("aten::linalg_solve_triangular")
def solve_triangular(
    op: Builder, self: Complex, B: Complex, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Complex:
    """linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)
    -> Tensor
    """
    batch, a, b = _together(op, self, B)
    if left:
        return joined(op, substituted(op, a, b, upper=upper, unit=unitriangular), batch)
    x = substituted(op, _flipped(op, a), _flipped(op, b), upper=not upper, unit=unitriangular)
    return joined(op, _flipped(op, x), batch)


@complex_op("aten::triangular_solve")
def triangular_solve(
    op: Builder, self: Complex, A: Complex, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)
    -> (Tensor solution, Tensor cloned_coefficient)
    """
    batch, a, b = _together(op, A, self)
    given = joined(op, a, batch)
    a, upper = (_flipped(op, a), not upper) if transpose else (a, upper)
    return joined(op, substituted(op, a, b, upper=upper, unit=unitriangular), batch), given


def _cholesky_factor(op: Builder, a: ComplexParts) -> tuple[ComplexParts, Tensor]:
    """The lower factor of [batch, n, n], of which the lower triangle is read, and [batch] LAPACK's info."""
    batch, n = a.real.known_sizes[:2]
    info = op.expand(op.const([0], INT64), (batch,))
    places, zero = op.range(n), op.const(0.0, DOUBLE)

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        before, info = ComplexParts(*states[:2]), states[2]
        column = before.each(lambda x: op.Gather(x, k, axis=2))
        square = op.Gather(column.real, k, axis=1)
        failed = op.Not(op.Greater(square, zero))
        root = op.Unsqueeze(op.Sqrt(square), op.ints(1))
        below = where(op, op.Greater(places, k), column.each(lambda x: op.Div(x, root)), ComplexParts(zero, zero))
        upright = below.each(lambda x: op.Unsqueeze(x, op.ints(2)))
        lying = ComplexParts(op.Unsqueeze(below.real, op.ints(1)), op.Neg(op.Unsqueeze(below.imaginary, op.ints(1))))
        here = where(op, op.Equal(places, k), ComplexParts(root, op.Mul(root, 0)), below)
        placed = where(op, op.GreaterOrEqual(places, k), here, column).each(lambda x: op.Unsqueeze(x, op.ints(2)))
        after = where(op, op.Equal(places, k), placed, sub(op, before, mul(op, upright, lying)))
        info = op.Where(op.And(failed, op.Equal(info, 0)), op.Add(k, 1), info)
        stopped = op.Unsqueeze(op.Greater(info, 0), op.ints(1, 2))
        found = where(op, stopped, before, after)
        return [found.real, found.imaginary, info]

    real, imaginary, info = loop(op, op.size(n), [a.real, a.imaginary, info], body)
    looked_at = op.And(op.Equal(down(op, n), op.range(n)), op.Not(untouched(op, info, n)))
    found = ComplexParts(real, op.Where(looked_at, zero, imaginary))
    found = where(op, untouched(op, info, n), a, found)
    return found.each(lambda x: lower_part(op, sized(x, *a.real.known_sizes))), info


@complex_op("aten::linalg_cholesky_ex")
def cholesky_ex(op: Builder, self: Complex, *, upper: bool = False, check_errors: bool = False) -> Any:
    """linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"""
    batch, given = batch_of(self), parts(op, self)
    factor, info = _cholesky_factor(op, _flipped(op, given, conjugate=True) if upper else given)
    factor = _flipped(op, factor, conjugate=True) if upper else factor
    return joined(op, factor, batch), op.cast(op.reshape(info, batch), INT32)


@complex_op("aten::cholesky")
def cholesky(op: Builder, self: Complex, upper: bool = False) -> Complex:
    """cholesky(Tensor self, bool upper=False) -> Tensor"""
    factor: Complex = cholesky_ex(op, self, upper=upper)[0]
    return factor


@complex_op("aten::cholesky_solve")
def cholesky_solve(op: Builder, self: Complex, input2: Complex, upper: bool = False) -> Complex:
    """cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"""
    batch, factor, b = _together(op, input2, self)
    lower = _flipped(op, factor, conjugate=True) if upper else factor
    half = substituted(op, lower, b, upper=False, unit=False)
    return joined(op, substituted(op, _flipped(op, lower, conjugate=True), half, upper=True, unit=False), batch)


@complex_op("aten::cholesky_inverse")
def cholesky_inverse(op: Builder, self: Complex, upper: bool = False) -> Complex:
    """cholesky_inverse(Tensor self, bool upper=False) -> Tensor

    The inverse of the factor, times itself. LAPACK takes its diagonal to be real, and reads no more than that of
    it; but the last element it multiplies by its own real part, as it is.
    """
    batch, factor, n = batch_of(self), parts(op, self), self.pairs.known_sizes[-2]
    one = identities(op, count(batch), n)
    b = ComplexParts(one, sized(op.Mul(one, 0), *one.known_sizes))
    lower = _flipped(op, factor, conjugate=True) if upper else factor
    inverse = substituted(op, lower, b, upper=False, unit=False)
    off_diagonal = op.Sub(1, identity(op, n))
    phase = inverse.imaginary
    inverse = ComplexParts(inverse.real, sized(op.Mul(phase, off_diagonal), *inverse.real.known_sizes))
    product = matmul(op, _flipped(op, inverse, conjugate=True), inverse)
    is_last = op.And(*(op.Equal(places, op.Sub(op.size(n), 1)) for places in (down(op, n), op.range(n))))
    as_it_is = op.Mul(inverse.real, op.Neg(phase) if upper else phase)
    product = ComplexParts(product.real, op.Where(is_last, as_it_is, product.imaginary))
    return joined(op, product.each(lambda x: sized(x, *one.known_sizes)), batch)


@complex_op("aten::linalg_lu_solve")
def lu_solve(
    op: Builder, LU: Complex, pivots: Tensor, B: Complex, *, left: bool = True, adjoint: bool = False
) -> Complex:
    """linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor

    x @ a = b is a.T @ x.T = b.T; of the adjoint, the conjugates are.
    """
    batch, lu, b = _together(op, LU, B)
    exchanges = op.expand(pivots, (*batch, pivots.known_sizes[-1]))
    order = order_of(op, op.reshape(exchanges, (count(batch), pivots.known_sizes[-1])), LU.pairs.known_sizes[-2])
    if left != adjoint:  # a @ x = b, or its adjoint from the right, which is the same
        b = b if left else _flipped(op, b, conjugate=True)
        half = substituted(op, lu, b.each(lambda y: rows_in_order(op, y, order)), upper=False, unit=True)
        x = substituted(op, lu, half, upper=True, unit=False)
        return joined(op, x if left else _flipped(op, x, conjugate=True), batch)
    turned = _flipped(op, lu, conjugate=adjoint)
    half = substituted(op, turned, b if left else _flipped(op, b), upper=False, unit=False)
    x = substituted(op, turned, half, upper=True, unit=True)
    x = x.each(lambda y: rows_in_order(op, y, inverse_order(op, order)))
    return joined(op, x if left else _flipped(op, x), batch)
