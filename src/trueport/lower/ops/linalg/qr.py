"""Householder reflections: QR and its relatives, with LAPACK's signs.

A reflection is `1 - tau * v @ v.T`. LAPACK keeps each v below the diagonal, without its leading one, and the factor R
on and above it.
"""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import slice_axis
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    batch_of,
    columns_in_order,
    down,
    flipped,
    identities,
    sized,
    smaller,
    stacked,
    unstacked,
    upper_part,
)
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


def reflected(op: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """LAPACK's geqrf of [batch, rows, columns]: the reflections with R, and tau [batch, steps]."""
    steps = smaller(*a.known_sizes[1:])
    taus = op.expand(op.const([[0.0]], DOUBLE), (a.known_sizes[0], steps))

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        before, taus = states
        after, tau = _reflection(op, before, a.known_sizes[1], a.known_sizes[2], k)
        return [after, op.Where(op.Equal(op.range(steps), k), tau, taus)]

    vectors, taus = loop(op, op.size(steps), [a, taus], body)
    return vectors, taus


def reflected_by_pivots(op: Builder, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """LAPACK's geqp3: the same, with the longest column that is left first; and the order [batch, columns]."""
    batch, rows, columns = a.known_sizes
    steps = smaller(rows, columns)
    taus = op.expand(op.const([[0.0]], DOUBLE), (batch, steps))
    lanes = op.range(columns)
    order = op.expand(lanes, (batch, columns))

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        before, taus, order = states
        left = op.Where(op.GreaterOrEqual(down(op, rows), k), before, op.const(0.0, DOUBLE))
        squares = op.ReduceSum(op.Mul(left, left), op.ints(1), keepdims=0)
        place = op.ArgMax(op.Where(op.GreaterOrEqual(lanes, k), squares, op.const(-1.0, DOUBLE)), axis=1, keepdims=1)
        swapped = op.Where(op.Equal(lanes, k), place, op.Where(op.Equal(lanes, place), k, lanes))
        before = columns_in_order(op, sized(before, batch, rows, columns), sized(swapped, batch, columns))
        after, tau = _reflection(op, before, rows, columns, k)
        taus = op.Where(op.Equal(op.range(steps), k), tau, taus)
        return [after, taus, op.GatherElements(order, swapped, axis=1)]

    vectors, taus, order = loop(op, op.size(steps), [a, taus, order], body)
    return vectors, taus, order


def _reflection(op: Builder, a: Tensor, rows: Size, columns: Size, k: Tensor) -> tuple[Tensor, Tensor]:
    """One step: the reflection that clears column k below the diagonal, applied and kept; and its tau [batch, 1]."""
    places, lanes = op.range(rows), op.range(columns)
    zero, one = op.const(0, DOUBLE), op.const(1, DOUBLE)
    column = op.Gather(a, k, axis=2)
    alpha = op.Gather(column, op.Reshape(k, op.ints(1)), axis=1)
    below = op.Where(op.Greater(places, k), column, zero)
    length = _length(op, below)
    beta = op.Sqrt(op.Add(op.Mul(alpha, alpha), op.Mul(length, length)))
    beta = op.Where(op.Less(alpha, zero), beta, op.Neg(beta))
    idle = op.Equal(length, zero)
    beta = op.Where(idle, alpha, beta)
    tau = op.Where(idle, zero, op.Div(op.Sub(beta, alpha), op.Where(idle, one, beta)))
    tail = op.Div(below, op.Where(idle, one, op.Sub(alpha, beta)))
    v = op.Unsqueeze(op.Where(op.Equal(places, k), one, tail), op.ints(2))
    changed = op.Where(op.Greater(lanes, k), _applied(op, v, op.Unsqueeze(tau, op.ints(2)), a), a)
    first = op.Where(op.Equal(places, k), beta, op.Where(op.Greater(places, k), tail, column))
    return op.Where(op.Equal(lanes, k), op.Unsqueeze(first, op.ints(2)), changed), tau


def _length(op: Builder, x: Tensor) -> Tensor:
    """[batch, 1] of [batch, n]; scaled by the largest element, so that no square over- or underflows."""
    largest = op.ReduceMax(op.Abs(x), op.ints(1), keepdims=1)
    scale = op.Where(op.Equal(largest, 0), op.const(1, DOUBLE), largest)
    part = op.Div(x, scale)
    return op.Mul(scale, op.Sqrt(op.ReduceSum(op.Mul(part, part), op.ints(1), keepdims=1)))


def _applied(op: Builder, v: Tensor, tau: Tensor, x: Tensor) -> Tensor:
    """(1 - tau * v @ v.T) @ x, with v [batch, rows, 1] and tau [batch, 1, 1]."""
    along = op.MatMul(op.Transpose(v, perm=[0, 2, 1]), x)
    return op.Sub(x, op.Mul(op.Mul(v, tau), along))


def product_with(op: Builder, vectors: Tensor, taus: Tensor, x: Tensor, *, first_to_last: bool) -> Tensor:
    """The reflections, one after another, applied to x [batch, rows, k]: last to first gives Q @ x, else Q.T @ x."""
    rows, steps = vectors.known_sizes[1], taus.known_sizes[1]
    places, zero, one = op.range(rows), op.const(0, DOUBLE), op.const(1, DOUBLE)

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        (x,) = states
        k = i if first_to_last else op.Sub(op.Sub(op.size(steps), 1), i)
        column = op.Gather(vectors, k, axis=2)
        v = op.Where(op.Equal(places, k), one, op.Where(op.Greater(places, k), column, zero))
        tau = op.Unsqueeze(op.Gather(taus, op.Reshape(k, op.ints(1)), axis=1), op.ints(2))
        return [_applied(op, op.Unsqueeze(v, op.ints(2)), tau, x)]

    return loop(op, op.size(steps), [x], body)[0]


def qr_of(op: Builder, a: Tensor, *, complete: bool = False) -> tuple[Tensor, Tensor]:
    """Q and R of [batch, rows, columns]; reduced to the smaller size, or complete."""
    batch, rows, columns = a.known_sizes
    width = rows if complete else smaller(rows, columns)
    vectors, taus = reflected(op, a)
    q = product_with(op, vectors, taus, identities(op, batch, rows, width), first_to_last=False)
    return q, triangle(op, vectors, complete=complete)


def triangle(op: Builder, vectors: Tensor, *, complete: bool) -> Tensor:
    batch, rows, columns = vectors.known_sizes
    least = rows if complete else smaller(rows, columns)
    return upper_part(op, sized(slice_axis(op, vectors, 1, 0, least), batch, least, columns))


@op("aten::linalg_qr")
def qr(op: Builder, A: Tensor, mode: str = "reduced") -> Any:
    """linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)"""
    batch = batch_of(A)
    if mode == "r":
        vectors, _ = reflected(op, stacked(op, A))
        nothing = sized(op.const([], A.element), 0)
        return nothing, unstacked(op, triangle(op, vectors, complete=False), batch)
    q, r = qr_of(op, stacked(op, A), complete=mode == "complete")
    return unstacked(op, q, batch), unstacked(op, r, batch)


@op("aten::geqrf")
def geqrf(op: Builder, self: Tensor) -> Any:
    """geqrf(Tensor self) -> (Tensor a, Tensor tau)"""
    batch = batch_of(self)
    vectors, taus = reflected(op, stacked(op, self))
    return unstacked(op, vectors, batch), unstacked(op, taus, batch)


@op("aten::linalg_householder_product")
def householder_product(op: Builder, input: Tensor, tau: Tensor) -> Tensor:
    """linalg_householder_product(Tensor input, Tensor tau) -> Tensor"""
    vectors, taus = stacked(op, input), _taus(op, tau)
    q = product_with(op, vectors, taus, identities(op, *vectors.known_sizes), first_to_last=False)
    return unstacked(op, q, batch_of(input))


def _taus(op: Builder, tau: Tensor) -> Tensor:
    """[batch, steps], in float64."""
    column = sized(op.Unsqueeze(tau, op.ints(tau.rank)), *tau.known_sizes, 1)
    batched = stacked(op, column)
    return op.reshape(batched, batched.known_sizes[:2])


@op("aten::ormqr")
def ormqr(
    op: Builder, self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor

    x @ Q is the transposition of Q.T @ x.T.
    """
    vectors, taus, x = stacked(op, self), _taus(op, input2), stacked(op, input3)
    if left:
        result = product_with(op, vectors, taus, x, first_to_last=transpose)
    else:
        result = flipped(op, product_with(op, vectors, taus, flipped(op, x), first_to_last=not transpose))
    return unstacked(op, result, batch_of(input3))
