"""Elimination with partial pivoting: LU, and solutions by it.

One `Loop` over the columns. Rows stay where they are while it runs; which row LAPACK would have exchanged to which
place is kept as a vector, and applied once at the end. The pivots are LAPACK's, the first largest of each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import count
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    INT64,
    down,
    flipped,
    inverse_order,
    rows_in_order,
    sized,
    smaller,
    stacked,
    unstacked,
)
from trueport.lower.ops.linalg.triangular import substituted
from trueport.lower.tensor import Tensor


@dataclass(frozen=True)
class Eliminated:
    """`lu` holds both factors; row order[i] of the matrix is row i of their product.

    `swaps` counts from 1, as LAPACK's pivots do; `info` is the first column without a pivot, or 0.
    """

    lu: Tensor
    order: Tensor
    swaps: Tensor
    info: Tensor


def eliminated(op: Builder, a: Tensor, dtype: ir.DataType = DOUBLE) -> Eliminated:
    """LU of [batch, rows, columns].

    Of a model in float32, every step is rounded to it, as LAPACK rounds it (a product with the pivot's inverse, a sum
    with one rounding): which of nearly equal numbers is the pivot, and whether a matrix counts as singular, then follow
    from the same bits as in eager. From a few columns to some fifteen, the factors are equal to the last bit.
    """

    def rounded(x: Tensor) -> Tensor:
        return x if dtype == DOUBLE else op.Cast(op.Cast(x, to=int(dtype)), to=int(DOUBLE))

    batch, rows, columns = a.known_sizes
    steps = smaller(rows, columns)
    places, lanes = op.range(rows), op.range(columns)
    order = op.expand(places, (batch, rows))
    waiting = op.expand(op.const([[True]]), (batch, rows))
    swaps = op.expand(op.const([[0]], INT64), (batch, steps))
    info = op.expand(op.const([[0]], INT64), (batch, 1))
    step_places, zero = op.range(steps), op.const(0, DOUBLE)

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        a, order, waiting, swaps, info = states
        column = op.Gather(a, k, axis=2)
        in_order = op.GatherElements(column, order, axis=1)
        size = op.Where(op.GreaterOrEqual(places, k), op.Abs(in_order), op.const(-1, DOUBLE))
        place = op.ArgMax(size, axis=1, keepdims=1)
        row = op.GatherElements(order, place, axis=1)
        displaced = op.Gather(order, op.Reshape(k, op.ints(1)), axis=1)
        order = op.Where(op.Equal(places, k), row, op.Where(op.Equal(places, place), displaced, order))
        waiting = op.And(waiting, op.Not(op.Equal(places, row)))
        pivots = op.Unsqueeze(op.GatherND(a, row, batch_dims=1), op.ints(1))
        pivot = op.Gather(pivots, k, axis=2)
        nothing = op.Equal(pivot, zero)
        inverse = rounded(op.Reciprocal(op.Where(nothing, op.const(1, DOUBLE), pivot)))
        share = rounded(op.Mul(column, inverse))
        shares, to_change = op.Unsqueeze(share, op.ints(2)), op.Unsqueeze(waiting, op.ints(2))
        reduced = op.Where(op.Greater(lanes, k), rounded(op.Sub(a, op.Mul(shares, pivots))), a)
        reduced = op.Where(op.Equal(lanes, k), shares, reduced)
        a = op.Where(to_change, reduced, a)
        swaps = op.Where(op.Equal(step_places, k), op.Add(place, 1), swaps)
        info = op.Where(op.And(nothing, op.Equal(info, 0)), op.Add(k, 1), info)
        return [a, order, waiting, swaps, info]

    a, order, _, swaps, info = loop(op, op.size(steps), [a, order, waiting, swaps, info], body)
    return Eliminated(rows_in_order(op, a, order), order, swaps, op.reshape(info, (batch,)))


def solution(op: Builder, factors: Eliminated, b: Tensor) -> Tensor:
    """x of a @ x = b, [batch, n, k]."""
    half = substituted(op, factors.lu, rows_in_order(op, b, factors.order), upper=False, unit=True)
    return substituted(op, factors.lu, half, upper=True, unit=False)


def transposed_solution(op: Builder, factors: Eliminated, b: Tensor) -> Tensor:
    """x of a.T @ x = b: U.T, then L.T, then the rows go back where they were."""
    lu = flipped(op, factors.lu)
    half = substituted(op, lu, b, upper=False, unit=False)
    x = substituted(op, lu, half, upper=True, unit=True)
    return rows_in_order(op, x, inverse_order(op, factors.order))


def broadcast_solution(
    op: Builder, factors: Eliminated, batch: tuple[Size, ...], b: Tensor, wanted: tuple[Size, ...], left: bool
) -> Tensor:
    """x of a @ x = b, or of x @ a = b, where one batch may be broadcast to the other."""
    n = factors.lu.known_sizes[1]
    if batch != wanted:
        lu = op.expand(unstacked(op, factors.lu, batch), (*wanted, n, n))
        order = op.expand(unstacked(op, factors.order, batch), (*wanted, n))
        total = count(wanted)
        factors = Eliminated(op.reshape(lu, (total, n, n)), op.reshape(order, (total, n)), factors.swaps, factors.info)
    b = stacked(op, op.expand(b, (*wanted, *b.known_sizes[-2:])))
    x = solution(op, factors, b) if left else flipped(op, transposed_solution(op, factors, flipped(op, b)))
    return unstacked(op, x, wanted)


def pivots_of(op: Builder, factors: Eliminated, batch: tuple[Size, ...]) -> Tensor:
    return op.cast(unstacked(op, factors.swaps, batch), INT32)


def as_if_regular(op: Builder, factors: Eliminated, a: Tensor, dtype: ir.DataType) -> Eliminated:
    """The same, with rounding errors for pivots of zero.

    Where eager raises on a singular matrix, it does so only if its own rounding, in its own dtype, leaves a zero; a
    matrix of equal numbers often passes. Its answer is then as large as ours is with this.
    """
    batch, n = a.known_sizes[:2]
    largest = op.ReduceMax(op.Pad(op.Abs(a), op.ints(0, 0, 0, 0, 0, 1)), op.ints(2), keepdims=1)
    largest = op.ReduceMax(op.Pad(largest, op.ints(0, 0, 0, 0, 1, 0)), op.ints(1), keepdims=1)
    on_diagonal = op.Equal(down(op, n), op.range(n))
    missing = op.And(on_diagonal, op.Equal(factors.lu, 0))
    lu = sized(op.Where(missing, op.Mul(largest, float(dtype.eps)), factors.lu), batch, n, n)
    return Eliminated(lu, factors.order, factors.swaps, factors.info)
