"""The inverses of the complex sines, cosines and tangents, by Kahan's formulas.

They are made of square roots of 1 + z and 1 - z, so that on a branch cut the sign of a zero part decides, as in C.
"""

from __future__ import annotations

from trueport.lower.builder import Builder
from trueport.lower.exact.precise import asinh, log1p
from trueport.lower.ops.binary import atan2, copysign
from trueport.lower.ops.complex.functions import Parts, of_imaginary, register, sqrt
from trueport.lower.tensor import Tensor

_FAR = 1e150
"""Its square is finite."""


def _roots(op: Builder, a: Tensor, b: Tensor) -> tuple[Parts, Parts]:
    """Of 1 - z and of 1 + z."""
    return sqrt(op, op.Sub(1, a), op.Neg(b)), sqrt(op, op.Add(a, 1), b)


def _turn(op: Builder, one: Parts, other: Parts) -> Tensor:
    """The imaginary part of conj(one) * other."""
    return op.Sub(op.Mul(one[0], other[1]), op.Mul(one[1], other[0]))


def _asin(op: Builder, a: Tensor, b: Tensor) -> Parts:
    below, above = _roots(op, a, b)
    real = op.Sub(op.Mul(below[0], above[0]), op.Mul(below[1], above[1]))
    return atan2(op, a, real), asinh(op, _turn(op, below, above))


def _acos(op: Builder, a: Tensor, b: Tensor) -> Parts:
    below, above = _roots(op, a, b)
    return op.Mul(atan2(op, below[0], above[0]), 2), asinh(op, _turn(op, above, below))


def _acosh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    below, above = sqrt(op, op.Sub(a, 1), b), sqrt(op, op.Add(a, 1), b)
    real = asinh(op, op.Add(op.Mul(below[0], above[0]), op.Mul(below[1], above[1])))
    return real, op.Mul(atan2(op, below[1], above[0]), 2)


def _atanh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """Odd in z, so the real part may be taken of |a|, where nothing cancels. What is infinite is far enough away."""
    a, b = (op.Clip(part, -_FAR, _FAR) for part in (a, b))
    size, square = op.Abs(a), op.Mul(b, b)
    away = op.Sub(1, size)
    real = op.Mul(log1p(op, op.Div(op.Mul(size, 4), op.Add(op.Mul(away, away), square))), 0.25)
    across = op.Sub(op.Mul(away, op.Add(size, 1)), square)
    return copysign(op, real, a), op.Mul(atan2(op, op.Mul(b, 2), across), 0.5)


for _name, _function in {
    "asin": _asin,
    "acos": _acos,
    "asinh": of_imaginary(_asin),
    "acosh": _acosh,
    "atan": of_imaginary(_atanh),
    "atanh": _atanh,
}.items():
    register(_name, _function)
