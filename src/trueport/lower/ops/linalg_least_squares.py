"""Least squares."""

from __future__ import annotations

from typing import Any

from trueport.capture.graph import Value
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import broadcast, slice_axis
from trueport.lower.ops.jacobi import rotated
from trueport.lower.ops.linalg_spectra import above, pseudo_inverse
from trueport.lower.ops.matrices import DOUBLE, INT64, batch_of, larger, sized, smaller, stacked, unstacked
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_ROUNDING = 1e-13
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
    zero = op.const([[0.0]], DOUBLE)
    relative = op.const([[_ROUNDING]], DOUBLE) if driver == "gels" else _cutoff(op, self, rcond)
    x = sized(op.MatMul(pseudo_inverse(op, a, zero, relative), right), total, columns, right.known_sizes[2])
    solution = unstacked(op, x, batch)
    solution = op.Squeeze(solution, op.ints(solution.rank - 1)) if is_vector else solution
    nothing, no_rank = sized(op.const([], self.element), 0), sized(op.const([], INT64), 0)
    if driver == "gels":
        return solution, _residuals(op, a, x, right, batch) if _has_residuals(op) else nothing, no_rank, nothing
    if not op.wants(1, 2, 3):
        return solution, None, None, None
    lengths = rotated(op, a).lengths
    kept = op.cast(above(op, lengths, zero, relative), INT64)
    rank = unstacked(op, sized(op.ReduceSum(kept, op.ints(1), keepdims=0), total), batch)
    if driver not in ("gelsd", "gelss"):
        return solution, nothing, rank, nothing
    least = smaller(rows, columns)
    values = unstacked(op, sized(slice_axis(op, lengths, 1, 0, least), total, least), batch)
    return solution, None if _has_residuals(op) else nothing, rank, values


def _has_residuals(op: Builder) -> bool:
    residuals = op.node.outputs[1] if op.node is not None else None
    return isinstance(residuals, Value) and residuals.shape != (0,)


def _residuals(op: Builder, a: Tensor, x: Tensor, right: Tensor, batch: Any) -> Tensor:
    """The sum of squares of what is left in each column."""
    off = op.Sub(op.MatMul(a, x), right)
    squares = op.ReduceSum(op.Mul(off, off), op.ints(1), keepdims=0)
    return unstacked(op, sized(squares, right.known_sizes[0], right.known_sizes[2]), batch)


def _cutoff(op: Builder, a: Tensor, rcond: float | None) -> Tensor:
    if rcond is not None:
        return op.const([[rcond]], DOUBLE)
    size = op.cast(op.size(larger(*a.known_sizes[-2:])), DOUBLE)
    return op.Mul(size, op.const([[float(a.element.eps)]], DOUBLE))
