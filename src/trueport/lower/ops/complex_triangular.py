"""Triangular systems of complex matrices, row after row: `linalg_triangular` on two parts.

A zero on the diagonal divides as it does in LAPACK, so that what cannot be solved is NaN there too.
"""

from __future__ import annotations

from typing import Any

from trueport.capture.graph import Size
from trueport.lower.builder import Builder
from trueport.lower.complex_numbers import Complex, complex_op
from trueport.lower.loops import loop
from trueport.lower.ops.axes import broadcast, count
from trueport.lower.ops.complex_linalg import batch_of
from trueport.lower.ops.complex_matrices import Parts, adjoint, joined, matmul, mul, parts, sub, where
from trueport.lower.ops.linalg_lu import order_of
from trueport.lower.ops.matrices import (
    DOUBLE,
    identities,
    identity,
    inverse_order,
    lower_part,
    rows_in_order,
    sized,
    upper_part,
    where_row_is,
)
from trueport.lower.tensor import Tensor


def substituted(op: Builder, a: Parts, b: Parts, *, upper: bool, unit: bool) -> Parts:
    """x of a @ x = b; the other triangle of `a` is not looked at. [batch, n, n] and [batch, n, k]"""
    batch, n, columns = b.real.known_sizes
    beside = a.each(lambda x: upper_part(op, x, 1) if upper else lower_part(op, x, -1))
    nothing = op.expand(op.const([[[0.0]]], DOUBLE), (batch, n, columns))

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        x = Parts(*states)
        k = op.Sub(op.Sub(op.size(n), 1), i) if upper else i
        at = op.Reshape(k, op.ints(1))
        row = sub(op, b.each(lambda y: op.Gather(y, at, axis=1)), matmul(op, _rows(op, beside, at), x))
        if not unit:
            row = _divided(op, row, _rows(op, a, at).each(lambda y: op.Gather(y, at, axis=2)))
        x = where(op, where_row_is(op, n, k), row, x)
        return [x.real, x.imaginary]

    return Parts(*loop(op, op.size(n), [nothing, nothing], body))


def _rows(op: Builder, a: Parts, at: Tensor) -> Parts:
    return a.each(lambda x: op.Gather(x, at, axis=1))


def _divided(op: Builder, a: Parts, b: Parts) -> Parts:
    """NaN where the divisor is zero, in both parts."""
    square = op.Add(op.Mul(b.real, b.real), op.Mul(b.imaginary, b.imaginary))
    return mul(op, a, Parts(b.real, op.Neg(b.imaginary))).each(lambda x: op.Div(x, square))


def _flipped(op: Builder, a: Parts, conjugate: bool = False) -> Parts:
    """The transposed matrices, or the adjoint ones."""
    batch, rows, columns = a.real.known_sizes
    turned = adjoint(op, a).each(lambda x: sized(x, batch, columns, rows))
    return turned if conjugate else Parts(turned.real, sized(op.Neg(turned.imaginary), batch, columns, rows))


def _together(op: Builder, a: Complex, b: Complex) -> tuple[tuple[Size, ...], Parts, Parts]:
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

    The inverse of the factor, times itself. LAPACK takes its diagonal to be real, and reads no more than that of it.
    """
    batch, factor, n = batch_of(self), parts(op, self), self.pairs.known_sizes[-2]
    one = identities(op, count(batch), n)
    b = Parts(one, sized(op.Mul(one, 0), *one.known_sizes))
    lower = _flipped(op, factor, conjugate=True) if upper else factor
    inverse = substituted(op, lower, b, upper=False, unit=False)
    off_diagonal = op.Sub(1, identity(op, n))
    inverse = Parts(inverse.real, sized(op.Mul(inverse.imaginary, off_diagonal), *inverse.real.known_sizes))
    product = matmul(op, _flipped(op, inverse, conjugate=True), inverse)
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
