"""Polynomials, ratios of them and Chebyshev series, in the dtype of their argument."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import onnx_ir as ir

from trueport.lower.tensor import Emitter, Tensor

Coefficients = Sequence[float]


def polynomial(op: Emitter, x: Tensor, coefficients: Coefficients) -> Tensor:
    """By Horner's rule; coefficients from the highest power down."""
    first, *rest = (op.const(c, x.element) for c in coefficients)
    return reduce(lambda total, c: op.Add(op.Mul(total, x), c), rest, first)


def ratio(op: Emitter, x: Tensor, top: Coefficients, bottom: Coefficients) -> Tensor:
    return op.Div(polynomial(op, x, top), polynomial(op, x, bottom))


def chebyshev(op: Emitter, x: Tensor, coefficients: Coefficients) -> Tensor:
    """The sum of c[i] * T_i(x / 2), by Clenshaw's recurrence; the last polynomial first, the first one halved."""
    before, now = op.const(0.0, x.element), op.const(coefficients[0], x.element)
    earlier = before
    for c in coefficients[1:]:
        earlier, before = before, now
        now = op.Add(op.Sub(op.Mul(x, before), earlier), op.const(c, x.element))
    return op.Mul(op.Sub(now, earlier), 0.5)


def any_of(op: Emitter, mask: Tensor) -> Tensor:
    """Whether a mask is true anywhere, as a 0-d bool; of nothing, it is not."""
    return op.Greater(op.ReduceSum(op.cast(mask, ir.DataType.INT64), keepdims=0), 0)
