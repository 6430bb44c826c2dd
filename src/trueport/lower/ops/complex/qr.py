"""Householder reflections of complex matrices, as LAPACK makes them: the loops of `linalg/qr.py`, on two parts.

A reflection is `1 - tau * v @ v.H`. QR applies its adjoint, so that R has a real diagonal; Q is their product.
"""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.loops import loop
from trueport.lower.ops.axes import slice_axis
from trueport.lower.ops.complex.linalg import batch_of
from trueport.lower.ops.complex.matrices import ComplexParts, adjoint, div, joined, matmul, mul, parts, sub, where
from trueport.lower.ops.linalg.matrices import DOUBLE, identities, sized, smaller, upper_part
from trueport.lower.tensor import Tensor


def _conjugate(op: Builder, x: ComplexParts) -> ComplexParts:
    return ComplexParts(x.real, op.Neg(x.imaginary))


def _applied(op: Builder, v: ComplexParts, tau: ComplexParts, x: ComplexParts) -> ComplexParts:
    """(1 - tau * v @ v.H) @ x, with v [batch, rows, 1] and tau [batch, 1, 1]."""
    along = matmul(op, adjoint(op, v), x)
    return sub(op, x, mul(op, mul(op, v, tau), along))


def _reflected(op: Builder, a: ComplexParts) -> tuple[ComplexParts, ComplexParts]:
    """LAPACK's geqrf of [batch, rows, columns]: the reflections with R, and tau [batch, steps]."""
    batch, rows, columns = a.real.known_sizes
    steps = smaller(rows, columns)
    none = op.expand(op.const([[0.0]], DOUBLE), (batch, steps))
    places, lanes, step_places = op.range(rows), op.range(columns), op.range(steps)
    zero, one = op.const(0.0, DOUBLE), op.const(1.0, DOUBLE)
    nothing = ComplexParts(zero, zero)

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        a, taus = ComplexParts(*states[:2]), ComplexParts(*states[2:])
        at = op.Reshape(k, op.ints(1))
        column = a.each(lambda x: op.Gather(x, k, axis=2))
        alpha = column.each(lambda x: op.Gather(x, at, axis=1))
        below = where(op, op.Greater(places, k), column, nothing)
        squares = op.Add(op.Mul(below.real, below.real), op.Mul(below.imaginary, below.imaginary))
        rest = op.ReduceSum(squares, op.ints(1), keepdims=1)
        leading = op.Add(op.Mul(alpha.real, alpha.real), op.Mul(alpha.imaginary, alpha.imaginary))
        length = op.Sqrt(op.Add(leading, rest))
        idle = op.And(op.Equal(rest, 0), op.Equal(alpha.imaginary, 0))
        beta = op.Where(idle, alpha.real, op.Where(op.Less(alpha.real, 0), length, op.Neg(length)))
        safe = op.Where(idle, one, beta)
        tau = ComplexParts(op.Div(op.Sub(beta, alpha.real), safe), op.Neg(op.Div(alpha.imaginary, safe)))
        tau = where(op, idle, nothing, tau)
        tail = div(op, below, ComplexParts(op.Sub(alpha.real, beta), alpha.imaginary))
        v = where(op, op.Equal(places, k), ComplexParts(one, zero), tail).each(lambda x: op.Unsqueeze(x, op.ints(2)))
        factor = _conjugate(op, tau).each(lambda x: op.Unsqueeze(x, op.ints(2)))
        changed = where(op, op.Greater(lanes, k), _applied(op, v, factor, a), a)
        first = where(op, op.Greater(places, k), tail, column)
        first = where(op, op.Equal(places, k), ComplexParts(beta, op.Mul(beta, 0)), first)
        a = where(op, op.Equal(lanes, k), first.each(lambda x: op.Unsqueeze(x, op.ints(2))), changed)
        taus = where(op, op.Equal(step_places, k), tau, taus)
        return [a.real, a.imaginary, taus.real, taus.imaginary]

    found = loop(op, op.size(steps), [a.real, a.imaginary, none, none], body)
    return ComplexParts(*found[:2]), ComplexParts(*found[2:])


def _product_with(
    op: Builder, vectors: ComplexParts, taus: ComplexParts, x: ComplexParts, *, adjoint_of_q: bool
) -> ComplexParts:
    """Q @ x, or Q.H @ x, of x [batch, rows, k]."""
    rows, steps = vectors.real.known_sizes[1], taus.real.known_sizes[1]
    places, zero, one = op.range(rows), op.const(0.0, DOUBLE), op.const(1.0, DOUBLE)

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        k = i if adjoint_of_q else op.Sub(op.Sub(op.size(steps), 1), i)
        column = vectors.each(lambda x: op.Gather(x, k, axis=2))
        v = where(op, op.Greater(places, k), column, ComplexParts(zero, zero))
        v = where(op, op.Equal(places, k), ComplexParts(one, zero), v).each(lambda x: op.Unsqueeze(x, op.ints(2)))
        tau = taus.each(lambda x: op.Unsqueeze(op.Gather(x, op.Reshape(k, op.ints(1)), axis=1), op.ints(2)))
        changed = _applied(op, v, _conjugate(op, tau) if adjoint_of_q else tau, ComplexParts(*states))
        return [changed.real, changed.imaginary]

    return ComplexParts(*loop(op, op.size(steps), [x.real, x.imaginary], body))


def _identity(op: Builder, like: ComplexParts, width: Size) -> ComplexParts:
    batch, rows = like.real.known_sizes[:2]
    real = identities(op, batch, rows, width)
    return ComplexParts(real, sized(op.Mul(real, 0), *real.known_sizes))


def _taus(op: Builder, tau: Complex) -> ComplexParts:
    """[batch, steps] each."""
    sizes = tau.pairs.known_sizes
    column = parts(op, Complex(op.reshape(tau.pairs, (*sizes[:-1], 1, 2))))
    return column.each(lambda x: op.reshape(x, x.known_sizes[:2]))


@complex_op("aten::linalg_qr")
def qr(op: Builder, A: Complex, mode: str = "reduced") -> Any:
    """linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)"""
    batch = batch_of(A)
    if mode == "r":
        r = _triangle(op, _reflected(op, parts(op, A))[0], complete=False)
        return Complex(op.expand(op.const([[0.0]], A.pairs.element), (0, 2))), joined(op, r, batch)
    q, r = qr_of(op, parts(op, A), complete=mode == "complete")
    return joined(op, q, batch), joined(op, r, batch)


def qr_of(op: Builder, a: ComplexParts, *, complete: bool) -> tuple[ComplexParts, ComplexParts]:
    """Q and R of [batch, rows, columns]."""
    vectors, taus = _reflected(op, a)
    r = _triangle(op, vectors, complete=complete)
    return _product_with(op, vectors, taus, _identity(op, a, r.real.known_sizes[1]), adjoint_of_q=False), r


def _triangle(op: Builder, vectors: ComplexParts, *, complete: bool) -> ComplexParts:
    total, rows, columns = vectors.real.known_sizes
    width = rows if complete else smaller(rows, columns)
    return vectors.each(lambda x: upper_part(op, sized(slice_axis(op, x, 1, 0, width), total, width, columns)))


@complex_op("aten::geqrf")
def geqrf(op: Builder, self: Complex) -> Any:
    """geqrf(Tensor self) -> (Tensor a, Tensor tau)"""
    batch = batch_of(self)
    vectors, taus = _reflected(op, parts(op, self))
    return joined(op, vectors, batch), joined(op, taus, batch)


@complex_op("aten::linalg_householder_product")
def householder_product(op: Builder, input: Complex, tau: Complex) -> Complex:
    """linalg_householder_product(Tensor input, Tensor tau) -> Tensor"""
    vectors = parts(op, input)
    start = _identity(op, vectors, vectors.real.known_sizes[2])
    return joined(op, _product_with(op, vectors, _taus(op, tau), start, adjoint_of_q=False), batch_of(input))


@complex_op("aten::ormqr")
def ormqr(
    op: Builder, self: Complex, input2: Complex, input3: Complex, left: bool = True, transpose: bool = False
) -> Complex:
    """ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor

    x @ Q is the adjoint of Q.H @ x.H.
    """
    vectors, taus, x = parts(op, self), _taus(op, input2), parts(op, input3)
    total, rows, columns = x.real.known_sizes
    if left:
        found = _product_with(op, vectors, taus, x, adjoint_of_q=transpose)
    else:
        turned = adjoint(op, x).each(lambda part: sized(part, total, columns, rows))
        found = adjoint(op, _product_with(op, vectors, taus, turned, adjoint_of_q=not transpose))
    return joined(op, found.each(lambda part: sized(part, total, rows, columns)), batch_of(input3))
