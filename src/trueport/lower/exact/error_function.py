"""The error function and its relatives in float64: W. J. Cody's rational approximations (Math. Comp. 23, 1969).

One near 0, one for the middle, one for the tail. The last two approximate erfcx(x) = exp(x**2) * erfc(x), which neither
over- nor underflows.
"""

from __future__ import annotations

import math

from trueport.lower.exact.series import ratio
from trueport.lower.tensor import Emitter, Tensor

_NEAR, _MIDDLE = 0.46875, 4.0


def erf(op: Emitter, x: Tensor) -> Tensor:
    size = op.Abs(x)
    rest = op.Mul(op.Exp(op.Neg(op.Mul(x, x))), _scaled_rest(op, size))
    far = op.Mul(op.Sign(x), op.Sub(1.0, rest))
    return op.Where(op.LessOrEqual(size, _NEAR), _near(op, x), far)


def erfc(op: Emitter, x: Tensor) -> Tensor:
    """1 - erf(x), with all its digits where that is nearly 0."""
    size = op.Abs(x)
    # Below exp(-745) there is nothing; without the bound, infinity times 0 would not be a number.
    rest = op.Mul(op.Exp(op.Max(op.Neg(op.Mul(x, x)), -800.0)), _scaled_rest(op, size))
    far = op.Where(op.Less(x, 0), op.Sub(2.0, rest), rest)
    return op.Where(op.LessOrEqual(size, _NEAR), op.Sub(1.0, _near(op, x)), far)


def erfcx(op: Emitter, x: Tensor) -> Tensor:
    """exp(x**2) * erfc(x)"""
    size = op.Abs(x)
    grown = op.Exp(op.Mul(x, x))
    far = _scaled_rest(op, size)
    mirrored = op.Sub(op.Mul(grown, 2.0), far)
    near = op.Mul(grown, op.Sub(1.0, _near(op, x)))
    return op.Where(op.LessOrEqual(size, _NEAR), near, op.Where(op.Less(x, 0), mirrored, far))


def _near(op: Emitter, x: Tensor) -> Tensor:
    """erf(x) near 0."""
    # The bound keeps what is not used finite.
    square = op.Min(op.Mul(x, x), 1.0)
    return op.Mul(x, ratio(op, square, _NEAR_TOP, _NEAR_BOTTOM))


def _scaled_rest(op: Emitter, size: Tensor) -> Tensor:
    """erfcx of what is not near 0 and not negative."""
    middle = ratio(op, op.Min(size, _MIDDLE), _MIDDLE_TOP, _MIDDLE_BOTTOM)
    large = op.Max(size, 1.0)
    inverse = op.Reciprocal(op.Mul(large, large))
    tail = op.Mul(inverse, ratio(op, inverse, _TAIL_TOP, _TAIL_BOTTOM))
    tail = op.Div(op.Sub(1 / math.sqrt(math.pi), tail), large)
    return op.Where(op.LessOrEqual(size, _MIDDLE), middle, tail)


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
