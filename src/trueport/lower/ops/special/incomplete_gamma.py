"""The regularised incomplete gamma functions, in float64 whatever the dtype.

Below the diagonal (x < a + 1) the power series of the lower one converges, above it the continued fraction of the upper
one; each is the other's rest. Both take about 9 * sqrt(a) rounds near the diagonal.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from trueport.lower.builder import Builder
from trueport.lower.exact import error_function, precise
from trueport.lower.exact.series import any_of, polynomial
from trueport.lower.loops import loop_while
from trueport.lower.ops.special.gamma import log_gamma, spread
from trueport.lower.ops.special.normal import DOUBLE, wide
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_ROUNDS = 50_000
_ROUNDING = 2.0**-53
_BIG = 2.0**52
_LANCZOS = 6.024680040776729583740234375


@op("aten::igamma")
def igamma(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """igamma(Tensor self, Tensor other) -> Tensor: the lower one, of a and x"""
    return _both(op, self, other)[0]


@op("aten::igammac")
def igammac(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """igammac(Tensor self, Tensor other) -> Tensor: the upper one, of a and x"""
    return _both(op, self, other)[1]


def _both(op: Builder, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The lower and the upper function; at the edges as eager has them."""
    a, x = (spread(op, wide(op, item), op.result.shape) for item in (self, other))
    infinite_a, infinite_x = op.IsInf(a), op.IsInf(x)
    negative = op.Or(op.Less(a, 0), op.Less(x, 0))
    # Eager looks at the other operand first: one that settles the result settles it beside a NaN too.
    strange_a = op.And(op.IsNaN(a), op.Not(op.Or(op.Equal(x, 0), infinite_x)))
    strange = op.Or(strange_a, op.And(op.IsNaN(x), op.Not(infinite_a)))
    nowhere = op.Or(op.And(op.Equal(a, 0), op.Equal(x, 0)), op.And(infinite_a, infinite_x))
    undefined = op.Or(op.Or(negative, strange), nowhere)
    lowest = op.Or(op.Equal(x, 0), infinite_a)
    highest = op.Or(op.Equal(a, 0), infinite_x)
    settled = op.Or(undefined, op.Or(lowest, highest))
    one = op.const(1.0, DOUBLE)
    inner_a, inner_x = op.Where(settled, one, a), op.Where(settled, one, x)
    below = op.Less(inner_x, op.Add(inner_a, 1))
    weight = _weight(op, inner_a, inner_x)
    lower = op.Div(op.Mul(_series(op, inner_a, inner_x, op.And(below, op.Not(settled))), weight), inner_a)
    upper = op.Mul(_fraction(op, inner_a, inner_x, op.Not(op.Or(below, settled))), weight)
    lower, upper = (
        op.Where(below, lower, op.Sub(1.0, upper)),
        op.Where(below, op.Sub(1.0, lower), upper),
    )
    if op.result.dtype is torch.float64:
        off = _eagers_own(op, inner_a, inner_x, lower)
        lower, upper = op.Add(lower, off), op.Sub(upper, off)
    zero, nan = op.const(0.0, DOUBLE), op.const(math.nan, DOUBLE)
    lower = op.Where(undefined, nan, op.Where(lowest, zero, op.Where(highest, one, lower)))
    upper = op.Where(undefined, nan, op.Where(lowest, one, op.Where(highest, zero, upper)))
    return lower, upper


def _eagers_own(op: Builder, a: Tensor, x: Tensor, lower: Tensor) -> Tensor:
    """By how much eager is off. Near the diagonal of large arguments it takes Temme's expansion, an error function and
    a series that it divides by sqrt(2 * pi * a), with a pi of float32: nine digits of ten are right."""
    apart = op.Div(op.Sub(x, a), a)
    size = op.Abs(apart)
    depth = op.Max(op.Sub(apart, precise.log1p(op, apart)), 0.0)
    error = op.Mul(error_function.erfc(op, op.Neg(op.Mul(op.Sign(apart), op.Sqrt(op.Mul(depth, a))))), 0.5)
    medium = op.And(op.And(op.Greater(a, 20.0), op.Less(a, 200.0)), op.Less(size, 0.3))
    large = op.And(op.Greater(a, 200.0), op.Less(size, op.Div(4.5, op.Sqrt(a))))
    off = op.Mul(op.Sub(lower, error), math.sqrt(math.pi / float(np.float32(math.pi))) - 1)
    return op.Where(op.Or(medium, large), off, op.const(0.0, DOUBLE))


def _weight(op: Builder, a: Tensor, x: Tensor) -> Tensor:
    """x**a * exp(-x) / gamma(a). Near the diagonal by Lanczos' sum, which does not cancel (Boost)."""
    away = op.Exp(op.Sub(op.Sub(op.Mul(a, op.Log(x)), x), log_gamma(op, a)))
    base = op.Add(a, _LANCZOS - 0.5)
    inverse = op.Reciprocal(a)
    total = op.Div(polynomial(op, inverse, _TOP[::-1]), polynomial(op, inverse, _BOTTOM[::-1]))
    root = op.Div(op.Sqrt(op.Div(base, math.e)), total)
    off = op.Div(op.Add(op.Sub(x, a), 0.5 - _LANCZOS), base)
    bend = op.Mul(a, op.Sub(precise.log1p(op, off), off))
    near = op.Mul(root, op.Exp(op.Add(bend, op.Div(op.Mul(x, 0.5 - _LANCZOS), base))))
    is_near = op.And(op.LessOrEqual(op.Abs(op.Sub(a, x)), op.Mul(a, 0.4)), op.GreaterOrEqual(a, 1.0))
    return op.Where(is_near, near, away)


def _series(op: Builder, a: Tensor, x: Tensor, needed: Tensor) -> Tensor:
    """1 + x / (a + 1) + x**2 / ((a + 1) * (a + 2)) + ..."""
    sizes = op.result.shape
    one, going = spread(op, op.const(1.0, DOUBLE), sizes), spread(op, needed, sizes)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        term, total, going = states
        divisor = op.Add(a, op.cast(op.Add(i, 1), DOUBLE))
        term = op.Where(going, op.Mul(term, op.Div(x, divisor)), term)
        total = op.Where(going, op.Add(total, term), total)
        going = op.And(going, op.Greater(term, op.Mul(total, _ROUNDING)))
        return any_of(op, going), [term, total, going]

    return loop_while(op, _ROUNDS, [one, one, going], body)[1]


def _fraction(op: Builder, a: Tensor, x: Tensor, needed: Tensor) -> Tensor:
    """The continued fraction (Cephes), rescaled whenever it grows large."""
    sizes = op.result.shape
    above = [spread(op, item, sizes) for item in (op.const(1.0, DOUBLE), op.Add(x, 1))]
    start = op.Add(op.Sub(x, a), 2)
    below = [spread(op, item, sizes) for item in (x, op.Mul(start, x))]
    first = spread(op, op.Div(above[1], below[1]), sizes)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        before_above, now_above, before_below, now_below, answer, going = states
        c = op.cast(op.Add(i, 1), DOUBLE)
        y = op.Mul(op.Add(op.Sub(1, a), c), c)
        z = op.Add(start, op.Mul(c, 2))
        top = op.Sub(op.Mul(now_above, z), op.Mul(before_above, y))
        bottom = op.Sub(op.Mul(now_below, z), op.Mul(before_below, y))
        usable = op.Not(op.Equal(bottom, 0))
        found = op.Div(top, op.Where(usable, bottom, op.const(1.0, DOUBLE)))
        change = op.Abs(op.Div(op.Sub(answer, found), found))
        settled = op.And(usable, op.LessOrEqual(change, _ROUNDING))
        answer = op.Where(op.And(going, usable), found, answer)
        scale = op.Where(op.Greater(op.Abs(top), _BIG), op.const(1 / _BIG, DOUBLE), op.const(1.0, DOUBLE))
        going = op.And(going, op.Not(settled))
        kept = [op.Mul(item, scale) for item in (now_above, top, now_below, bottom)]
        return any_of(op, going), [*kept, answer, going]

    states = [*above, *below, first, spread(op, needed, sizes)]
    return loop_while(op, _ROUNDS, states, body)[4]


# Lanczos' sum, scaled by exp(g); from the highest power of a down.
_TOP = (
    0.006061842346248906525783753964555936883222,
    0.5098416655656676188125178644804694509993,
    19.51992788247617482847860966235652136208,
    449.9445569063168119446858607650988409623,
    6955.999602515376140356310115515198987526,
    75999.29304014542649875303443598909137092,
    601859.6171681098786670226533699352302507,
    3481712.15498064590882071018964774556468,
    14605578.08768506808414169982791359218571,
    43338889.32467613834773723740590533316085,
    86363131.28813859145546927288977868422342,
    103794043.1163445451906271053616070238554,
    56906521.91347156388090791033559122686859,
)
_BOTTOM = (
    *(1.0, 66.0, 1925.0, 32670.0, 357423.0, 2637558.0, 13339535.0, 45995730.0),
    *(105258076.0, 150917976.0, 120543840.0, 39916800.0, 0.0),
)
