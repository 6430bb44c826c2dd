"""The exponential of a matrix."""

from __future__ import annotations

import math

from trueport.lower.builder import Builder
from trueport.lower.loops import loop
from trueport.lower.ops.linalg.matrices import DOUBLE, INT64, batch_of, identity, sized, stacked, unstacked
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_DEGREE = 18
_NORM = 1.0
"""Up to this norm, Taylor's polynomial of that degree has float64's digits."""
_MOST_SQUARINGS = 1100


@op("aten::linalg_matrix_exp", "aten::matrix_exp")
def matrix_exp(op: Builder, self: Tensor) -> Tensor:
    """linalg_matrix_exp(Tensor self) -> Tensor

    Scaled down by a power of two, by Taylor's polynomial, and squared as many times, each matrix by its own number.
    """
    return unstacked(op, exponentials(op, stacked(op, self)), batch_of(self))


def exponentials(op: Builder, a: Tensor) -> Tensor:
    """Of [batch, n, n]."""
    sizes = a.known_sizes
    # Beside a zero, so that there is a largest sum also of nothing.
    sums = op.Pad(op.ReduceSum(op.Abs(a), op.ints(1), keepdims=1), op.ints(0, 0, 0, 0, 0, 1))
    norm = op.ReduceMax(sums, op.ints(2), keepdims=1)
    times = op.Ceil(op.Div(op.Log(op.Max(norm, _NORM)), math.log(2)))
    times = op.Clip(op.Where(op.IsNaN(times), op.const(0.0, DOUBLE), times), 0.0, float(_MOST_SQUARINGS))
    scaled = sized(op.Mul(a, op.Pow(op.const(2.0, DOUBLE), op.Neg(times))), *sizes)
    x = _taylor(op, scaled)

    def body(i: Tensor, states: list[Tensor]) -> list[Tensor]:
        (x,) = states
        return [op.Where(op.Less(op.cast(i, DOUBLE), times), op.MatMul(x, x), x)]

    rounds = op.ReduceMax(op.Concat(op.Reshape(times, op.ints(-1)), op.const([0.0], DOUBLE), axis=0), keepdims=0)
    return loop(op, op.cast(rounds, INT64), [x], body)[0]


def _taylor(op: Builder, a: Tensor) -> Tensor:
    """In blocks of three powers (Paterson and Stockmeyer): eight products instead of seventeen."""
    one = identity(op, a.known_sizes[-1])
    square = op.MatMul(a, a)
    cube = op.MatMul(square, a)
    factors = [1 / math.factorial(k) for k in range(_DEGREE + 1)]

    def block(k: int) -> Tensor:
        lower = op.Add(op.Mul(one, factors[k]), op.Mul(a, factors[k + 1]))
        return op.Add(lower, op.Mul(square, factors[k + 2]))

    total = op.Add(block(_DEGREE - 3), op.Mul(cube, factors[_DEGREE]))
    for k in range(_DEGREE - 6, -1, -3):
        total = op.Add(op.MatMul(total, cube), block(k))
    return sized(total, *a.known_sizes)
