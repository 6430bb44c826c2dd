"""LU, and determinants by it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import broadcast, count, slice_axis
from trueport.lower.ops.linalg.elimination import Eliminated, broadcast_solution, eliminated, pivots_of
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    INT64,
    batch_of,
    diagonal_of,
    down,
    flipped,
    lower_part,
    sized,
    smaller,
    stacked,
    unstacked,
    upper_part,
    with_unit_diagonal,
)
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


def _parity(op: Builder, factors: Eliminated) -> Tensor:
    """[batch]: 1, or -1 after an odd number of exchanges."""
    batch, steps = factors.swaps.known_sizes
    moved = op.Not(op.Equal(factors.swaps, op.Add(op.range(steps), 1)))
    odd = op.Mod(op.ReduceSum(op.cast(moved, INT64), op.ints(1), keepdims=0), 2)
    return sized(op.cast(op.Sub(1, op.Mul(odd, 2)), DOUBLE), batch)


@op("aten::linalg_det", "aten::det", "aten::_linalg_det")
def det(op: Builder, self: Tensor) -> Any:
    """_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"""
    if self.element == ir.DataType.FLOAT and not op.wants(1, 2):
        result = op.Det(self)
        return result if op.node is None or len(op.node.outputs) == 1 else (result, None, None)
    batch = batch_of(self)
    factors = eliminated(op, stacked(op, self), self.element)
    product = op.ReduceProd(diagonal_of(op, factors.lu), op.ints(1), keepdims=0)
    result = unstacked(op, sized(op.Mul(product, _parity(op, factors)), count(batch)), batch)
    if op.node is None or len(op.node.outputs) == 1:
        return result
    return result, unstacked(op, factors.lu, batch), pivots_of(op, factors, batch)


@op("aten::_linalg_slogdet")
def slogdet(op: Builder, A: Tensor) -> Any:
    """_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"""
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A), A.element)
    diagonal = diagonal_of(op, factors.lu)
    sign = op.Mul(op.ReduceProd(op.Sign(diagonal), op.ints(1), keepdims=0), _parity(op, factors))
    log = op.ReduceSum(op.Log(op.Abs(diagonal)), op.ints(1), keepdims=0)
    total = count(batch)
    sign, log = (unstacked(op, sized(x, total), batch) for x in (sign, log))
    return sign, log, unstacked(op, factors.lu, batch), pivots_of(op, factors, batch)


@op("aten::linalg_lu_factor_ex")
def lu_factor_ex(op: Builder, A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)
    -> (Tensor LU, Tensor pivots, Tensor info)
    """
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A), A.element)
    info = op.cast(unstacked(op, factors.info, batch), INT32)
    return unstacked(op, factors.lu, batch), pivots_of(op, factors, batch), info


@op("aten::linalg_lu")
def lu(op: Builder, A: Tensor, *, pivot: bool = True) -> Any:
    """linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"""
    batch = batch_of(A)
    factors = eliminated(op, stacked(op, A), A.element)
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
        flipped_x = broadcast_solution(op, factors, batch, flipped(op, B), wanted, not left)
        return flipped(op, flipped_x)
    return broadcast_solution(op, factors, batch, B, wanted, left)
