"""Functions of float64, for which ONNX Runtime has kernels in float32 only, out of those that it has in float64.

Computing them in float32 would lose half of the digits. Each is exact to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import onnx_ir as ir

if TYPE_CHECKING:
    from trueport.lower.builder import Builder
    from trueport.lower.tensor import Tensor

DOUBLE = ir.DataType.DOUBLE
Function = Callable[["Builder", "Tensor"], "Tensor"]


def tan(op: Builder, x: Tensor) -> Tensor:
    return op.Div(op.Sin(x), op.Cos(x))


def cosh(op: Builder, x: Tensor) -> Tensor:
    return op.Mul(op.Add(op.Exp(x), op.Exp(op.Neg(x))), 0.5)


def sinh(op: Builder, x: Tensor) -> Tensor:
    """By tanh near 0, where the difference of two exponentials would cancel; by them where cosh would overflow."""
    far = op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), 0.5)
    return op.Where(op.Less(op.Abs(x), 1), op.Mul(op.Tanh(x), cosh(op, x)), far)


def asinh(op: Builder, x: Tensor) -> Tensor:
    size = op.Abs(x)
    square = op.Mul(size, size)
    # log1p(a + a^2 / (1 + sqrt(a^2 + 1))), which does not cancel near 0.
    small = log1p(op, op.Add(size, op.Div(square, op.Add(op.Sqrt(op.Add(square, 1)), 1))))
    large = op.Add(op.Log(size), math.log(2))
    return op.Mul(op.Sign(x), op.Where(op.Greater(size, 1e8), large, small))


def acosh(op: Builder, x: Tensor) -> Tensor:
    above = op.Sub(x, 1)
    small = log1p(op, op.Add(above, op.Sqrt(op.Mul(above, op.Add(x, 1)))))
    return op.Where(op.Greater(x, 1e8), op.Add(op.Log(x), math.log(2)), small)


def atanh(op: Builder, x: Tensor) -> Tensor:
    return op.Mul(log1p(op, op.Div(op.Mul(x, 2), op.Sub(1, x))), 0.5)


def log1p(op: Builder, x: Tensor) -> Tensor:
    """With u = 1 + x as rounded, `log(u) * x / (u - 1)` keeps the digits of a small x that `log(1 + x)` loses."""
    above = op.Add(x, 1)
    log = op.Log(above)
    small = op.Where(op.Equal(above, 1), x, op.Mul(log, op.Div(x, op.Sub(above, 1))))
    return op.Where(op.Greater(x, 1), log, small)


def _angle(op: Builder, sine: Tensor, cosine: Tensor, first: Tensor) -> Tensor:
    """The angle of a point on the unit circle, from a first guess in float32: sin(a - b) is nearly a - b."""
    guess = op.Cast(first, to=int(DOUBLE))
    return op.Add(guess, op.Sub(op.Mul(sine, op.Cos(guess)), op.Mul(cosine, op.Sin(guess))))


def atan(op: Builder, x: Tensor) -> Tensor:
    bounded = op.Clip(x, -1e100, 1e100)
    length = op.Sqrt(op.Add(op.Mul(bounded, bounded), 1))
    guess = op.Atan(op.Cast(x, to=int(ir.DataType.FLOAT)))
    return _angle(op, op.Div(bounded, length), op.Reciprocal(length), guess)


def asin(op: Builder, x: Tensor) -> Tensor:
    cosine = op.Sqrt(op.Mul(op.Sub(1, x), op.Add(x, 1)))
    return _angle(op, x, cosine, op.Asin(op.Cast(x, to=int(ir.DataType.FLOAT))))


def acos(op: Builder, x: Tensor) -> Tensor:
    return op.Sub(math.pi / 2, asin(op, x))


def erf(op: Builder, x: Tensor) -> Tensor:
    """W. J. Cody's rational approximations (Math. Comp. 23, 1969): one near 0, one for the middle, one for the tail."""
    size = op.Abs(x)
    square = op.Mul(x, x)
    near = op.Mul(x, _ratio(op, square, _NEAR_TOP, _NEAR_BOTTOM))
    falling = op.Exp(op.Neg(square))
    middle = op.Mul(falling, _ratio(op, size, _MIDDLE_TOP, _MIDDLE_BOTTOM))
    inverse = op.Reciprocal(op.Max(square, 1.0))
    tail = op.Mul(inverse, _ratio(op, inverse, _TAIL_TOP, _TAIL_BOTTOM))
    tail = op.Mul(falling, op.Div(op.Sub(1 / math.sqrt(math.pi), tail), op.Max(size, 1.0)))
    rest = op.Where(op.LessOrEqual(size, 4.0), middle, tail)
    far = op.Mul(op.Sign(x), op.Sub(1.0, rest))
    return op.Where(op.LessOrEqual(size, 0.46875), near, far)


def _ratio(op: Builder, x: Tensor, top: Sequence[float], bottom: Sequence[float]) -> Tensor:
    def polynomial(coefficients: Sequence[float]) -> Tensor:
        first, *rest = (op.const(c, DOUBLE) for c in coefficients)
        return reduce(lambda total, c: op.Add(op.Mul(total, x), c), rest, first)

    return op.Div(polynomial(top), polynomial(bottom))


# Coefficients from the highest power down.
_NEAR_TOP = (
    1.85777706184603153e-1,
    3.16112374387056560,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_NEAR_BOTTOM = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_TOP = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_BOTTOM = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_TAIL_TOP = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_TAIL_BOTTOM = (
    1.0,
    2.56852019228982242,
    1.87295284992346725,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)

IN_FLOAT64: dict[str, Function] = {
    "Acos": acos,
    "Acosh": acosh,
    "Asin": asin,
    "Asinh": asinh,
    "Atan": atan,
    "Atanh": atanh,
    "Cosh": cosh,
    "Erf": erf,
    "Sinh": sinh,
    "Tan": tan,
}
"""By the name of the ONNX operator that float32 has."""


def function(op: Builder, name: str, x: Tensor) -> Tensor:
    """An ONNX function of one tensor, in whatever precision the tensor has."""
    if x.dtype == DOUBLE and name in IN_FLOAT64:
        return IN_FLOAT64[name](op, x)
    result: Tensor = getattr(op, name)(x)
    return result
