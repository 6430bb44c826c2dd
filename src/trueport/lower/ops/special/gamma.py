"""The gamma function's relatives, computed in float64 whatever the dtype."""

from __future__ import annotations

import math

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.exact.series import any_of, polynomial
from trueport.lower.loops import loop_while
from trueport.lower.ops.special.normal import DOUBLE, wide, working
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_SHIFT = 10
"""Above it, the asymptotic series have all digits; smaller arguments are moved up, by the recurrence."""
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA = (1 / 42, -1 / 30, 1 / 6)
_ROUNDING = 2.0**-53


def log_gamma(op: Builder, x: Tensor) -> Tensor:
    """log |gamma(x)|, of float64."""
    is_negative = op.Less(x, 0.0)
    positive = op.Where(is_negative, op.Sub(1.0, x), x)
    found = _log_gamma_of_positive(op, positive)
    sine = op.Abs(op.Sin(op.Mul(_from_nearest_integer(op, x), math.pi)))
    mirrored = op.Sub(op.Sub(math.log(math.pi), op.Log(sine)), found)
    result = op.Where(is_negative, mirrored, found)
    # Below this are integers only, poles, beside which the rest may overflow.
    at_pole = op.Or(op.IsInf(x), op.LessOrEqual(x, -(2.0**52)))
    result = op.Where(at_pole, op.const(math.inf, DOUBLE), result)
    # Of the smallest numbers the product with pi has too few digits.
    return op.Where(op.Less(op.Abs(x), 1e-20), op.Neg(op.Log(op.Abs(x))), result)


def _log_gamma_of_positive(op: Builder, x: Tensor) -> Tensor:
    is_small = op.Less(x, float(_SHIFT))
    product = x
    for i in range(1, _SHIFT):
        product = op.Mul(product, op.Add(x, float(i)))
    large = op.Where(is_small, op.Add(x, float(_SHIFT)), x)
    inverse = op.Reciprocal(large)
    correction = op.Mul(inverse, polynomial(op, op.Mul(inverse, inverse), _STIRLING))
    leading = op.Sub(op.Mul(op.Sub(large, 0.5), op.Log(large)), large)
    found = op.Add(op.Add(leading, 0.5 * math.log(2 * math.pi)), correction)
    return op.Sub(found, op.Where(is_small, op.Log(product), op.const(0.0, DOUBLE)))


def _from_nearest_integer(op: Builder, x: Tensor) -> Tensor:
    """Of which the sine of pi times it is as good as that of x, and more exact."""
    return op.Sub(x, op.Round(x))


@op("aten::lgamma")
def lgamma(op: Builder, self: Tensor) -> Tensor:
    """lgamma(Tensor self) -> Tensor"""
    return log_gamma(op, wide(op, self))


@op("aten::digamma")
def digamma(op: Builder, self: Tensor) -> Tensor:
    """digamma(Tensor self) -> Tensor"""
    x = wide(op, self)
    is_negative = op.Less(x, 0.0)
    positive = op.Where(is_negative, op.Sub(1.0, x), x)
    is_small = op.Less(positive, float(_SHIFT))
    inverses = op.Reciprocal(positive)
    for i in range(1, _SHIFT):
        inverses = op.Add(inverses, op.Reciprocal(op.Add(positive, float(i))))
    large = op.Where(is_small, op.Add(positive, float(_SHIFT)), positive)
    inverse = op.Reciprocal(large)
    square = op.Mul(inverse, inverse)
    series = op.Mul(square, polynomial(op, square, _DIGAMMA))
    found = op.Sub(op.Sub(op.Log(large), op.Mul(inverse, 0.5)), series)
    found = op.Sub(found, op.Where(is_small, inverses, op.const(0.0, DOUBLE)))
    whole = op.Where(is_negative, op.Ceil(x), op.Floor(x))
    angle = op.Mul(op.Sub(x, whole), math.pi)
    mirrored = op.Sub(found, op.Div(op.Mul(op.Cos(angle), math.pi), op.Sin(angle)))
    at_integer = op.And(is_negative, op.Equal(x, op.Floor(x)))
    mirrored = op.Where(at_integer, op.const(math.nan, DOUBLE), mirrored)
    at_zero = op.Neg(op.Reciprocal(x))
    return op.Where(op.Equal(x, 0.0), at_zero, op.Where(is_negative, mirrored, found))


def trigamma(op: Builder, x: Tensor) -> Tensor:
    """The derivative of digamma, by eager's six shifts and three terms, which are good for nine digits.

    Eager rounds the argument of the sine to its own dtype, that of `x`.
    """
    is_low = op.Less(x, 0.5)
    sine = _sine_near_pole(op, op.cast(op.Mul(x, op.const(math.pi, x.element)), DOUBLE))
    mirrored = op.Div(math.pi * math.pi, op.Mul(sine, sine))
    wider = op.cast(x, DOUBLE)
    shifted = op.Where(is_low, op.Sub(1.0, wider), wider)
    total: Tensor = op.const(0.0, DOUBLE)
    for _ in range(6):
        total = op.Add(total, op.Reciprocal(op.Mul(shifted, shifted)))
        shifted = op.Add(shifted, 1.0)
    inverse = op.Reciprocal(shifted)
    square = op.Mul(inverse, inverse)
    series = op.Add(op.Add(op.Mul(inverse, 0.5), 1.0), op.Mul(square, polynomial(op, square, _TRIGAMMA)))
    found = op.Add(total, op.Mul(series, inverse))
    return op.Where(is_low, op.Sub(mirrored, found), found)


_HALF_PI = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""In pieces, of which a multiple is exact."""


def _sine_near_pole(op: Builder, angle: Tensor) -> Tensor:
    """Up to its sign. Near a multiple of pi the runtime's kernel is right to the last digits of 1, not of the sine."""
    turns = op.Round(op.Div(angle, math.pi))
    rest = angle
    for piece in _HALF_PI:
        rest = op.Sub(rest, op.Mul(turns, 2 * piece))
    return op.Where(op.Less(op.Abs(turns), 2.0**19), op.Sin(rest), op.Sin(angle))


@op("aten::polygamma")
def polygamma(op: Builder, n: int, self: Tensor) -> Tensor:
    """polygamma(int n, Tensor self) -> Tensor"""
    if n == 0:
        return digamma(op, self)
    if n == 1:
        return trigamma(op, working(op, self))
    order = op.const(float(n + 1), DOUBLE)
    return op.Mul(hurwitz_zeta(op, order, wide(op, self)), (-1.0) ** (n + 1) * math.exp(math.lgamma(n + 1)))


@op("aten::special_zeta", "aten::special_zeta.self_scalar", "aten::special_zeta.other_scalar")
def zeta(op: Builder, self: Tensor | float, other: Tensor | float) -> Tensor:
    """special_zeta(Tensor self, Tensor other) -> Tensor: Hurwitz's zeta function"""
    x, q = (wide(op, item if isinstance(item, Tensor) else op.const(float(item), DOUBLE)) for item in (self, other))
    return hurwitz_zeta(op, x, q)


_EULER_MACLAURIN = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)


def hurwitz_zeta(op: Builder, x: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + k)**-x (Cephes): term by term until q + k > 9, and the rest by Euler and Maclaurin."""
    sizes = op.result.shape
    # Where the sum is not asked for, 1 stands in for q, so that no round is lost on it.
    settled = op.Or(op.LessOrEqual(x, 1.0), op.And(op.LessOrEqual(q, 0.0), op.Equal(q, op.Floor(q))))
    settled = op.Or(settled, op.And(op.LessOrEqual(q, 0.0), op.Not(op.Equal(x, op.Floor(x)))))
    start = op.Where(settled, op.const(1.0, DOUBLE), q)
    minus = op.Neg(x)
    a = spread(op, op.Add(start, op.Mul(x, 0.0)), sizes)
    first = spread(op, op.Pow(start, minus), sizes)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        a, term, total, adding, _ = states
        a = op.Where(adding, op.Add(a, 1.0), a)
        term = op.Where(adding, op.Pow(a, minus), term)
        total = op.Where(adding, op.Add(total, term), total)
        matters = op.Not(op.Less(op.Abs(term), op.Mul(total, _ROUNDING)))
        more = op.Or(op.Less(i, 8), op.LessOrEqual(a, 9.0))
        adding = op.And(adding, op.And(matters, more))
        return any_of(op, adding), [a, term, total, adding, matters]

    everywhere = spread(op, op.Not(op.IsNaN(a)), sizes)
    a, term, total, _, matters = loop_while(op, 2**31, [a, first, first, everywhere, everywhere], body)
    whole = op.Sub(op.Add(total, op.Div(op.Mul(term, a), op.Sub(x, 1.0))), op.Mul(term, 0.5))
    factor: Tensor = op.const(1.0, DOUBLE)
    for k, divisor in enumerate(_EULER_MACLAURIN):
        factor = op.Mul(factor, op.Add(x, float(2 * k)))
        term = op.Div(term, a)
        whole = op.Add(whole, op.Div(op.Mul(factor, term), divisor))
        factor = op.Mul(factor, op.Add(x, float(2 * k + 1)))
        term = op.Div(term, a)
    # Where the terms had faded before, the rest is nothing, and its series no longer tells so.
    return _at_the_edges(op, x, q, op.Where(matters, whole, total))


def _at_the_edges(op: Builder, x: Tensor, q: Tensor, inside: Tensor) -> Tensor:
    infinite, undefined = op.const(math.inf, DOUBLE), op.const(math.nan, DOUBLE)
    is_integer = op.Equal(q, op.Floor(q))
    low = op.Where(is_integer, infinite, op.Where(op.Equal(x, op.Floor(x)), inside, undefined))
    found = op.Where(op.LessOrEqual(q, 0.0), low, inside)
    return op.Where(op.Equal(x, 1.0), infinite, op.Where(op.Less(x, 1.0), undefined, found))


def spread(op: Builder, x: Tensor, sizes: tuple[Size, ...]) -> Tensor:
    """`x` in the sizes of the result, so that a loop can carry it."""
    out = op.Expand(x, op.shape(sizes))
    out.settle(sizes)
    return out
