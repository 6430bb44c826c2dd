"""Least squares of complex matrices, by real ones of twice the size: their shortest solutions are the same."""

from __future__ import annotations

from typing import Any

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.ops.axes import broadcast, slice_axis
from trueport.lower.ops.complex.linalg import batch_of, doubled, halved
from trueport.lower.ops.linalg.jacobi import rotated
from trueport.lower.ops.linalg.least_squares import ROUNDING, cutoff, has_residuals, shortest
from trueport.lower.ops.linalg.matrices import DOUBLE, INT64, sized, smaller
from trueport.lower.ops.linalg.spectra import above
from trueport.lower.tensor import Tensor


@complex_op("aten::linalg_lstsq")
def lstsq(op: Builder, self: Complex, b: Complex, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)
    -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)

    As for real matrices. The rank counts singular values, which come twice in the larger matrix.
    """
    is_vector = b.rank == self.rank - 1
    sizes = b.pairs.known_sizes
    right = Complex(op.reshape(b.pairs, (*sizes[:-1], 1, 2))) if is_vector else b
    batch = broadcast(batch_of(self), batch_of(right))
    columns, width = self.pairs.known_sizes[-2], right.pairs.known_sizes[-2]
    a2, b2 = doubled(op, self, batch), doubled(op, right, batch)
    relative = op.const([[ROUNDING]], DOUBLE) if driver == "gels" else cutoff(op, self.real(op), rcond)
    x = shortest(op, a2, b2, relative)
    nothing, rank = sized(op.const([], self.pairs.element), 0), sized(op.const([], INT64), 0)
    residuals: Tensor | None = nothing
    values = nothing
    if has_residuals(op) and driver == "gels":
        residuals = _residuals(op, a2, x, b2, batch)
    elif has_residuals(op) and driver in ("gelsd", "gelss"):
        residuals = None
    if driver != "gels":
        total = a2.known_sizes[0]
        least = smaller(*self.pairs.known_sizes[-3:-1])
        lengths = op.Gather(rotated(op, a2).lengths, op.Mul(op.range(least), 2), axis=1)
        kept = op.cast(above(op, lengths, op.const([[0.0]], DOUBLE), relative), INT64)
        rank = op.reshape(sized(op.ReduceSum(kept, op.ints(1), keepdims=0), total), batch)
        if driver in ("gelsd", "gelss"):
            values = op.reshape(sized(lengths, total, least), (*batch, least))
    solution = halved(op, x, batch, columns, width).pairs
    if is_vector:
        solution = op.Squeeze(solution, op.ints(solution.rank - 2))
    return Complex(solution), residuals, rank, values


def _residuals(op: Builder, a: Tensor, x: Tensor, right: Tensor, batch: Any) -> Tensor:
    """The sum of squares of what is left in each column; every second column of the larger matrix is one."""
    total, _, width = right.known_sizes
    off = op.Sub(op.MatMul(a, x), right)
    squares = sized(op.ReduceSum(op.Mul(off, off), op.ints(1), keepdims=0), total, width)
    every_second = op.reshape(squares, (total, width // 2, 2))
    first = sized(slice_axis(op, every_second, 2, 0, 1), total, width // 2, 1)
    return op.reshape(first, (*batch, width // 2))
