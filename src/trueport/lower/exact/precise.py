"""Functions of float64, for which ONNX Runtime has kernels in float32 only, out of those that it has in float64.

Computing them in float32 would lose half of the digits. Each is exact to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from trueport.lower.exact.error_function import erf
from trueport.lower.tensor import Emitter, Tensor

DOUBLE = ir.DataType.DOUBLE
Function = Callable[["Emitter", "Tensor"], "Tensor"]


def tan(op: Emitter, x: Tensor) -> Tensor:
    return op.Div(op.Sin(x), op.Cos(x))


def cosh(op: Emitter, x: Tensor) -> Tensor:
    return op.Mul(op.Add(op.Exp(x), op.Exp(op.Neg(x))), 0.5)


def sinh(op: Emitter, x: Tensor) -> Tensor:
    """By tanh near 0, where the difference of two exponentials would cancel; by them where cosh would overflow."""
    far = op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), 0.5)
    return op.Where(op.Less(op.Abs(x), 1), op.Mul(op.Tanh(x), cosh(op, x)), far)


def asinh(op: Emitter, x: Tensor) -> Tensor:
    size = op.Abs(x)
    square = op.Mul(size, size)
    # log1p(a + a^2 / (1 + sqrt(a^2 + 1))), which does not cancel near 0.
    small = log1p(op, op.Add(size, op.Div(square, op.Add(op.Sqrt(op.Add(square, 1)), 1))))
    large = op.Add(op.Log(size), math.log(2))
    return op.Mul(op.Sign(x), op.Where(op.Greater(size, 1e8), large, small))


def acosh(op: Emitter, x: Tensor) -> Tensor:
    above = op.Sub(x, 1)
    small = log1p(op, op.Add(above, op.Sqrt(op.Mul(above, op.Add(x, 1)))))
    found = op.Where(op.Greater(x, 1e8), op.Add(op.Log(x), math.log(2)), small)
    return op.Where(op.Less(x, 1), op.const(math.nan, DOUBLE), found)


def atanh(op: Emitter, x: Tensor) -> Tensor:
    return op.Mul(log1p(op, op.Div(op.Mul(x, 2), op.Sub(1, x))), 0.5)


def log1p(op: Emitter, x: Tensor) -> Tensor:
    """With u = 1 + x as rounded, `log(u) * x / (u - 1)` keeps the digits of a small x that `log(1 + x)` loses."""
    above = op.Add(x, 1)
    log = op.Log(above)
    small = op.Where(op.Equal(above, 1), x, op.Mul(log, op.Div(x, op.Sub(above, 1))))
    return op.Where(op.Greater(x, 1), log, small)


def logarithm(op: Emitter, x: Tensor, base: int) -> Tensor:
    """To the base 2 or 10, exact at its powers: `log(8) / log(2)` may be just below 3, and be cut off to 2."""
    wide = op.cast(x, DOUBLE)
    nearly = op.Div(op.Log(wide), math.log(base))
    if x.dtype != DOUBLE:  # what is off in the last digits of a float64 is gone when they are rounded off
        return op.cast(nearly, x.element)
    whole = op.Round(nearly)
    return op.Where(op.Equal(op.Pow(op.const(float(base), DOUBLE), whole), x), whole, nearly)


def round_decimal(op: Emitter, x: Tensor, digits: int) -> Tensor:
    """Python's `round(x, digits)` of a float64: the decimal that is nearest to what x is, not to `x * 10**digits`.

    That product is rounded itself (2.675 * 100 is 267.5). Its error is found by Dekker's method, and decides where the
    product stands half-way; half-way without an error is a tie, which goes to the even number.
    """
    scale = 10.0 ** abs(digits)
    if digits >= 0:
        scaled = op.Mul(x, scale)
        error = _error_of_product(op, x, op.const(scale, DOUBLE), scaled)
    else:
        scaled = op.Div(x, scale)
        product = op.Mul(scaled, scale)
        error = op.Sub(op.Sub(x, product), _error_of_product(op, scaled, op.const(scale, DOUBLE), product))
    floor, nearest = op.Floor(scaled), op.Round(scaled)
    up, down = op.Greater(error, 0), op.Less(error, 0)
    decided = op.Where(up, op.Add(floor, 1), op.Where(down, floor, nearest))
    whole = op.Where(op.Equal(op.Sub(scaled, floor), 0.5), decided, nearest)
    rounded = op.Div(whole, scale) if digits >= 0 else op.Mul(whole, scale)
    # What has no digits behind the point, or is infinite, stays.
    return op.Where(op.Less(op.Abs(scaled), 2.0**52), rounded, x)


def _error_of_product(op: Emitter, x: Tensor, y: Tensor, product: Tensor) -> Tensor:
    """`x * y - product`, exactly: the factors in halves of 26 bits, whose products are exact."""

    def halves(z: Tensor) -> tuple[Tensor, Tensor]:
        spread = op.Mul(z, 134217729.0)
        high = op.Sub(spread, op.Sub(spread, z))
        return high, op.Sub(z, high)

    (a, b), (c, d) = halves(x), halves(y)
    rest = op.Sub(op.Mul(a, c), product)
    return op.Add(op.Add(op.Add(rest, op.Mul(a, d)), op.Mul(b, c)), op.Mul(b, d))


def _angle(op: Emitter, sine: Tensor, cosine: Tensor, first: Tensor) -> Tensor:
    """The angle of a point on the unit circle, from a first guess in float32: sin(a - b) is nearly a - b."""
    guess = op.Cast(first, to=int(DOUBLE))
    return op.Add(guess, op.Sub(op.Mul(sine, op.Cos(guess)), op.Mul(cosine, op.Sin(guess))))


def atan(op: Emitter, x: Tensor) -> Tensor:
    bounded = op.Clip(x, -1e100, 1e100)
    length = op.Sqrt(op.Add(op.Mul(bounded, bounded), 1))
    guess = op.Atan(op.Cast(x, to=int(ir.DataType.FLOAT)))
    return _angle(op, op.Div(bounded, length), op.Reciprocal(length), guess)


def asin(op: Emitter, x: Tensor) -> Tensor:
    cosine = op.Sqrt(op.Mul(op.Sub(1, x), op.Add(x, 1)))
    return _angle(op, x, cosine, op.Asin(op.Cast(x, to=int(ir.DataType.FLOAT))))


def acos(op: Emitter, x: Tensor) -> Tensor:
    return op.Sub(math.pi / 2, asin(op, x))


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


def function(op: Emitter, name: str, x: Tensor) -> Tensor:
    """An ONNX function of one tensor, in whatever precision the tensor has."""
    if x.dtype == DOUBLE and name in IN_FLOAT64:
        return IN_FLOAT64[name](op, x)
    result: Tensor = getattr(op, name)(x)
    return result
