"""Least squares."""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Value
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import broadcast, slice_axis
from trueport.lower.ops.linalg.jacobi import rotated
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT64,
    batch_of,
    identities,
    inverse_order,
    larger,
    rows_in_order,
    sized,
    smaller,
    stacked,
    unstacked,
)
from trueport.lower.ops.linalg.qr import product_with, reflected_by_pivots, triangle
from trueport.lower.ops.linalg.spectra import above, pseudo_inverse
from trueport.lower.ops.linalg.triangular import substituted
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

ROUNDING = 1e-13
"""Singular values below this share of the largest are rounding: a wide matrix has too many columns to do without."""


@op("aten::linalg_lstsq")
def lstsq(op: Builder, self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)
    -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)

    The shortest of the best solutions. LAPACK's `gels` takes the matrix to have full rank, and says no rank; `gelsd`
    and `gelss` give residuals unless the rank is too small, in a size that only the data tells: they are left out.
    """
    is_vector = b.rank == self.rank - 1
    right = sized(op.Unsqueeze(b, op.ints(b.rank)), *b.known_sizes, 1) if is_vector else b
    batch = broadcast(batch_of(self), batch_of(right))
    a, right = (stacked(op, op.expand(x, (*batch, *x.known_sizes[-2:]))) for x in (self, right))
    total, rows, columns = a.known_sizes
    least = smaller(rows, columns)
    zero = op.const([[0.0]], DOUBLE)
    nothing, no_rank = sized(op.const([], self.element), 0), sized(op.const([], INT64), 0)
    residuals: Tensor | None = nothing
    rank, values = no_rank, nothing
    if driver == "gels":
        x = shortest(op, a, right, op.const([[ROUNDING]], DOUBLE))
        residuals = _residuals(op, a, x, right, batch) if has_residuals(op) else nothing
    elif driver in ("gelsd", "gelss"):
        relative = cutoff(op, self, rcond)
        x = shortest(op, a, right, relative)
        lengths = rotated(op, a).lengths
        kept = op.cast(above(op, lengths, zero, relative), INT64)
        rank = unstacked(op, sized(op.ReduceSum(kept, op.ints(1), keepdims=0), total), batch)
        values = unstacked(op, sized(slice_axis(op, lengths, 1, 0, least), total, least), batch)
        residuals = None if has_residuals(op) else nothing
    else:
        x, found = _by_pivots(op, a, right, cutoff(op, self, rcond))
        rank = unstacked(op, found, batch)
    solution = unstacked(op, x, batch)
    solution = op.Squeeze(solution, op.ints(solution.rank - 1)) if is_vector else solution
    return solution, residuals, rank, values


def shortest(op: Builder, a: Tensor, right: Tensor, relative: Tensor) -> Tensor:
    """Without the singular values below a share of the largest."""
    x = op.MatMul(pseudo_inverse(op, a, op.const([[0.0]], DOUBLE), relative), right)
    return sized(x, a.known_sizes[0], a.known_sizes[2], right.known_sizes[2])


def _by_pivots(op: Builder, a: Tensor, right: Tensor, relative: Tensor) -> tuple[Tensor, Tensor]:
    """LAPACK's gelsy: QR with pivots, without the rows that only a badly conditioned triangle has; and the rank.

    LAPACK estimates the condition of each leading triangle step by step. Here it is taken from the norms of the
    triangle and of its inverse, whose leading parts are those of the leading triangles.
    """
    total, rows, columns = a.known_sizes
    least, width = smaller(rows, columns), right.known_sizes[2]
    vectors, taus, order = reflected_by_pivots(op, a)
    r = triangle(op, vectors, complete=False)
    square = sized(slice_axis(op, r, 2, 0, least), total, least, least)
    inverse = substituted(op, square, identities(op, total, least), upper=True, unit=False)
    condition = op.Mul(_leading_norms(op, square), _leading_norms(op, inverse))
    condition = op.Div(condition, op.Sqrt(op.cast(op.Add(op.range(least), 1), DOUBLE)))
    counted = op.cast(op.LessOrEqual(op.Mul(condition, relative), 1.0), INT64)
    # A row counts only if all before it do.
    counted = op.Equal(op.CumSum(counted, op.const(1)), op.Add(op.range(least), 1))
    rank = sized(op.ReduceSum(op.cast(counted, INT64), op.ints(1), keepdims=0), total)
    kept = op.Unsqueeze(counted, op.ints(2))
    turned = product_with(op, vectors, taus, right, first_to_last=True)
    turned = op.Where(kept, slice_axis(op, turned, 1, 0, least), op.const(0.0, DOUBLE))
    r = sized(op.Where(kept, r, op.const(0.0, DOUBLE)), total, least, columns)
    y = shortest(op, r, sized(turned, total, least, width), op.Mul(relative, 1e-2))
    return rows_in_order(op, y, inverse_order(op, order)), rank


def _leading_norms(op: Builder, x: Tensor) -> Tensor:
    """[batch, n]: the Frobenius norms of the leading square parts of triangles, upper ones."""
    return op.Sqrt(op.CumSum(op.ReduceSum(op.Mul(x, x), op.ints(1), keepdims=0), op.const(1)))


def has_residuals(op: Builder) -> bool:
    residuals = op.node.outputs[1] if op.node is not None else None
    return isinstance(residuals, Value) and residuals.shape != (0,)


def _residuals(op: Builder, a: Tensor, x: Tensor, right: Tensor, batch: Any) -> Tensor:
    """The sum of squares of what is left in each column."""
    off = op.Sub(op.MatMul(a, x), right)
    squares = op.ReduceSum(op.Mul(off, off), op.ints(1), keepdims=0)
    return unstacked(op, sized(squares, right.known_sizes[0], right.known_sizes[2]), batch)


def cutoff(op: Builder, a: Tensor, rcond: float | None) -> Tensor:
    if rcond is not None:
        return op.const([[rcond]], DOUBLE)
    size = op.cast(op.size(larger(*a.known_sizes[-2:])), DOUBLE)
    return op.Mul(size, op.const([[float(a.element.eps)]], DOUBLE))
