"""Triangular systems, and Cholesky's factor."""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.axes import broadcast, count
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    INT64,
    batch_of,
    down,
    flipped,
    identities,
    lower_part,
    sized,
    stacked,
    unstacked,
    upper_part,
    where_row_is,
)
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


def substituted(op: Builder, a: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    """x of a @ x = b, row after row; the other triangle of `a` is not looked at. [batch, n, n] and [batch, n, k]"""
    batch, n, columns = b.known_sizes
    # The rows that are not solved yet are zero in x, so that a row of `a` without its diagonal picks what is known.
    beside = upper_part(op, a, 1) if upper else lower_part(op, a, -1)
    x = op.expand(op.const([[[0.0]]], DOUBLE), (batch, n, columns))

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        (x,) = states
        k = op.Sub(op.Sub(op.size(n), 1), i) if upper else i
        at = op.Reshape(k, op.ints(1))
        known = op.MatMul(op.Gather(beside, at, axis=1), x)
        row = op.Sub(op.Gather(b, at, axis=1), known)
        if not unit:
            row = op.Div(row, op.Gather(op.Gather(a, at, axis=1), at, axis=2))
        return [op.Where(where_row_is(op, n, k), row, x)]

    return loop(op, op.size(n), [x], body)[0]


@op("aten::linalg_solve_triangular")
def solve_triangular(
    op: Builder, self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)
    -> Tensor
    """
    batch = broadcast(batch_of(self), batch_of(B))
    a, b = (stacked(op, op.expand(x, (*batch, *x.known_sizes[-2:]))) for x in (self, B))
    if left:
        return unstacked(op, substituted(op, a, b, upper=upper, unit=unitriangular), batch)
    x = substituted(op, flipped(op, a), flipped(op, b), upper=not upper, unit=unitriangular)
    return unstacked(op, flipped(op, x), batch)


@op("aten::triangular_solve")
def triangular_solve(
    op: Builder, self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)
    -> (Tensor solution, Tensor cloned_coefficient)
    """
    batch = broadcast(batch_of(self), batch_of(A))
    b, given = (op.expand(x, (*batch, *x.known_sizes[-2:])) for x in (self, A))
    a = stacked(op, given)
    a, upper = (flipped(op, a), not upper) if transpose else (a, upper)
    x = substituted(op, a, stacked(op, b), upper=upper, unit=unitriangular)
    return unstacked(op, x, batch), given


def cholesky_factor(op: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """The lower factor of [batch, n, n], of which the lower triangle is read, and [batch] LAPACK's info."""
    batch, n = a.known_sizes[:2]
    info = op.expand(op.const([0], INT64), (batch,))
    places, zero = op.range(n), op.const(0, DOUBLE)

    def body(k: Tensor, states: list[Tensor]) -> list[Tensor]:
        a, info = states
        column = op.Gather(a, k, axis=2)
        square = op.Gather(column, k, axis=1)
        failed = op.Not(op.Greater(square, zero))
        root = op.Sqrt(square)
        scaled = op.Div(column, op.Unsqueeze(root, op.ints(1)))
        here = op.Where(op.Equal(places, k), op.Unsqueeze(root, op.ints(1)), scaled)
        below = op.Where(op.Greater(places, k), here, zero)
        products = op.Mul(op.Unsqueeze(below, op.ints(2)), op.Unsqueeze(below, op.ints(1)))
        placed = op.Where(op.GreaterOrEqual(places, k), here, column)
        after = op.Where(op.Equal(places, k), op.Unsqueeze(placed, op.ints(2)), op.Sub(a, products))
        info = op.Where(op.And(failed, op.Equal(info, 0)), op.Add(k, 1), info)
        # A matrix that is not positive definite is left as it is when that shows.
        stopped = op.Unsqueeze(op.Greater(info, 0), op.ints(1, 2))
        return [op.Where(stopped, a, after), info]

    after, info = loop(op, op.size(n), [a, info], body)
    return lower_part(op, sized(op.Where(untouched(op, info, n), a, after), *a.known_sizes)), info


def untouched(op: Builder, info: Tensor, n: Size) -> Tensor:
    """[batch, n, n]: what LAPACK has not come to when it finds that a matrix is not positive definite.

    It goes by columns: of the one where that shows, it has looked at the diagonal.
    """
    failed_at = op.Unsqueeze(op.Sub(info, 1), op.ints(1, 2))
    later = op.And(op.GreaterOrEqual(failed_at, 0), op.GreaterOrEqual(op.range(n), failed_at))
    looked_at = op.And(op.Equal(down(op, n), failed_at), op.Equal(op.range(n), failed_at))
    return op.And(later, op.Not(looked_at))


@op("aten::linalg_cholesky_ex")
def cholesky_ex(op: Builder, self: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"""
    batch = batch_of(self)
    given = stacked(op, self)
    factor, info = cholesky_factor(op, flipped(op, given) if upper else given)
    factor = flipped(op, factor) if upper else factor
    return unstacked(op, factor, batch), op.cast(unstacked(op, info, batch), INT32)


@op("aten::cholesky")
def cholesky(op: Builder, self: Tensor, upper: bool = False) -> Tensor:
    """cholesky(Tensor self, bool upper=False) -> Tensor"""
    factor: Tensor = cholesky_ex(op, self, upper=upper)[0]
    return factor


@op("aten::cholesky_solve")
def cholesky_solve(op: Builder, self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"""
    batch = broadcast(batch_of(self), batch_of(input2))
    b, factor = (stacked(op, op.expand(x, (*batch, *x.known_sizes[-2:]))) for x in (self, input2))
    return unstacked(op, _solved_by(op, flipped(op, factor) if upper else factor, b), batch)


@op("aten::cholesky_inverse")
def cholesky_inverse(op: Builder, self: Tensor, upper: bool = False) -> Tensor:
    """cholesky_inverse(Tensor self, bool upper=False) -> Tensor"""
    batch, n = batch_of(self), self.known_sizes[-1]
    factor = stacked(op, self)
    b = identities(op, count(batch), n)
    return unstacked(op, _solved_by(op, flipped(op, factor) if upper else factor, b), batch)


def _solved_by(op: Builder, factor: Tensor, b: Tensor) -> Tensor:
    """x of factor @ factor.T @ x = b, of a lower factor."""
    half = substituted(op, factor, b, upper=False, unit=False)
    return substituted(op, flipped(op, factor), half, upper=True, unit=False)
