"""Elimination with partial pivoting: LU, and what is found by it (solutions, inverses, determinants).

One `Loop` over the columns. Rows stay where they are while it runs; which row LAPACK would have exchanged to which
place is kept as a vector, and applied once at the end. The pivots are LAPACK's, the first largest of each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from trueport.capture.graph import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import broadcast, count, slice_axis
from trueport.lower.ops.linalg_triangular import substituted
from trueport.lower.ops.matrices import (
    DOUBLE,
    INT32,
    INT64,
    batch_of,
    diagonal_of,
    down,
    flipped,
    identities,
    lower_part,
    rows_in_order,
    sized,
    smaller,
    stacked,
    unstacked,
    upper_part,
    with_unit_diagonal,
)
from trueport.lower.table import op
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


def eliminated(op: Builder, a: Tensor) -> Eliminated:
    """LU of [batch, rows, columns]."""
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
        share = op.Div(column, op.Where(nothing, op.const(1, DOUBLE), pivot))
        shares, to_change = op.Unsqueeze(share, op.ints(2)), op.Unsqueeze(waiting, op.ints(2))
        reduced = op.Where(op.Greater(lanes, k), op.Sub(a, op.Mul(shares, pivots)), a)
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


def _parity(op: Builder, factors: Eliminated) -> Tensor:
    """[batch]: 1, or -1 after an odd number of exchanges."""
    batch, steps = factors.swaps.known_sizes
    moved = op.Not(op.Equal(factors.swaps, op.Add(op.range(steps), 1)))
    odd = op.Mod(op.ReduceSum(op.cast(moved, INT64), op.ints(1), keepdims=0), 2)
    return sized(op.cast(op.Sub(1, op.Mul(odd, 2)), DOUBLE), batch)


def _pivots(op: Builder, factors: Eliminated, batch: tuple[Size, ...]) -> Tensor:
    return op.cast(unstacked(op, factors.swaps, batch), INT32)


@op("aten::_linalg_solve_ex")
def solve_ex(op: Builder, A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)
    -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)
    """
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A))
    b, is_vector = _right_side(op, A, B)
    wanted = broadcast(batch, batch_of(b))
    x = _broadcast_solution(op, factors, batch, b, wanted, left)
    result = op.Squeeze(x, op.ints(x.rank - 1)) if is_vector else x
    lu = unstacked(op, factors.lu, batch)
    return result, lu, _pivots(op, factors, batch), op.cast(unstacked(op, factors.info, batch), INT32)


def _right_side(op: Builder, A: Tensor, B: Tensor) -> tuple[Tensor, bool]:
    """B as matrices. It is a batch of vectors if its sizes are those of A without the last one."""
    if B.rank == 1 or B.known_sizes == A.known_sizes[:-1]:
        column = op.Unsqueeze(B, op.ints(B.rank))
        return sized(column, *B.known_sizes, 1), True
    return B, False


def _broadcast_solution(
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


def transposed_solution(op: Builder, factors: Eliminated, b: Tensor) -> Tensor:
    """x of a.T @ x = b: U.T, then L.T, then the rows go back where they were."""
    lu = flipped(op, factors.lu)
    half = substituted(op, lu, b, upper=False, unit=False)
    x = substituted(op, lu, half, upper=True, unit=True)
    return rows_in_order(op, x, _inverse_order(op, factors.order))


def _inverse_order(op: Builder, order: Tensor) -> Tensor:
    batch, n = order.known_sizes
    places = op.expand(op.range(n), (batch, n))
    return sized(op.ScatterElements(order, order, places, axis=1), batch, n)


@op("aten::linalg_inv_ex")
def inverse(op: Builder, A: Tensor, *, check_errors: bool = False) -> Any:
    """linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"""
    a, batch = stacked(op, A), batch_of(A)
    factors = eliminated(op, a)
    total, n = a.known_sizes[:2]
    x = solution(op, factors, identities(op, total, n))
    return unstacked(op, x, batch), op.cast(unstacked(op, factors.info, batch), INT32)


@op("aten::linalg_det", "aten::det", "aten::_linalg_det")
def det(op: Builder, self: Tensor) -> Any:
    """_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"""
    if self.element == ir.DataType.FLOAT and not op.wants(1, 2):
        result = op.Det(self)
        return result if op.node is None or len(op.node.outputs) == 1 else (result, None, None)
    batch = batch_of(self)
    factors = eliminated(op, stacked(op, self))
    product = op.ReduceProd(diagonal_of(op, factors.lu), op.ints(1), keepdims=0)
    result = unstacked(op, sized(op.Mul(product, _parity(op, factors)), count(batch)), batch)
    if op.node is None or len(op.node.outputs) == 1:
        return result
    return result, unstacked(op, factors.lu, batch), _pivots(op, factors, batch)


@op("aten::_linalg_slogdet")
def slogdet(op: Builder, A: Tensor) -> Any:
    """_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"""
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A))
    diagonal = diagonal_of(op, factors.lu)
    sign = op.Mul(op.ReduceProd(op.Sign(diagonal), op.ints(1), keepdims=0), _parity(op, factors))
    log = op.ReduceSum(op.Log(op.Abs(diagonal)), op.ints(1), keepdims=0)
    total = count(batch)
    sign, log = (unstacked(op, sized(x, total), batch) for x in (sign, log))
    return sign, log, unstacked(op, factors.lu, batch), _pivots(op, factors, batch)


@op("aten::linalg_lu_factor_ex")
def lu_factor_ex(op: Builder, A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)
    -> (Tensor LU, Tensor pivots, Tensor info)
    """
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A))
    info = op.cast(unstacked(op, factors.info, batch), INT32)
    return unstacked(op, factors.lu, batch), _pivots(op, factors, batch), info


@op("aten::linalg_lu")
def lu(op: Builder, A: Tensor, *, pivot: bool = True) -> Any:
    """linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"""
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A))
    lower, upper = _both(op, factors.lu)
    rows = permutation(op, factors.order)
    return unstacked(op, rows, batch), unstacked(op, lower, batch), unstacked(op, upper, batch)


def _both(op: Builder, lu: Tensor) -> tuple[Tensor, Tensor]:
    """The two factors that `lu` holds: [rows, least] and [least, columns]."""
    batch, rows, columns = lu.known_sizes
    least = smaller(rows, columns)
    lower = sized(slice_axis(op, lu, 2, 0, least), batch, rows, least)
    upper = sized(slice_axis(op, lu, 1, 0, least), batch, least, columns)
    return with_unit_diagonal(op, lower_part(op, lower, -1)), upper_part(op, upper)


def permutation(op: Builder, order: Tensor) -> Tensor:
    """[batch, n, n], with which the product of the factors is multiplied from the left."""
    batch, n = order.known_sizes
    return sized(op.cast(op.Equal(down(op, n), op.Unsqueeze(order, op.ints(1))), DOUBLE), batch, n, n)


def order_of(op: Builder, pivots: Tensor, rows: Size) -> Tensor:
    """[batch, rows]: where LAPACK's exchanges bring the rows from; `pivots` is [batch, steps]."""
    batch, steps = pivots.known_sizes
    targets = op.Sub(op.cast(pivots, INT64), 1)
    places = op.range(rows)
    order = op.expand(places, (batch, rows))

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        (order,) = states
        at = op.Reshape(k, op.ints(1))
        place, here = op.Gather(targets, at, axis=1), op.Gather(order, at, axis=1)
        there = op.GatherElements(order, place, axis=1)
        return [op.Where(op.Equal(places, k), there, op.Where(op.Equal(places, place), here, order))]

    return loop(op, op.size(steps), [order], body)[0]


@op("aten::lu_unpack")
def lu_unpack(
    op: Builder, LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)
    -> (Tensor P, Tensor L, Tensor U)
    """
    batch = batch_of(LU_data)
    nothing = sized(op.const([], LU_data.element), 0)
    rows, lower, upper = nothing, nothing, nothing
    if unpack_data:
        lower, upper = (unstacked(op, x, batch) for x in _both(op, stacked(op, LU_data)))
    if unpack_pivots:
        pivots = op.reshape(LU_pivots, (count(batch), LU_pivots.known_sizes[-1]))
        rows = unstacked(op, permutation(op, order_of(op, pivots, LU_data.known_sizes[-2])), batch)
    return rows, lower, upper


@op("aten::linalg_lu_solve")
def lu_solve(op: Builder, LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor"""
    batch = batch_of(LU)
    order = order_of(op, op.reshape(pivots, (count(batch), pivots.known_sizes[-1])), LU.known_sizes[-1])
    factors = Eliminated(stacked(op, LU), order, order, order)
    wanted = broadcast(batch, batch_of(B))
    if adjoint:
        # x @ a = b is a.T @ x.T = b.T: both flips together are the other side.
        flipped_x = _broadcast_solution(op, factors, batch, flipped(op, B), wanted, not left)
        return flipped(op, flipped_x)
    return _broadcast_solution(op, factors, batch, B, wanted, left)
