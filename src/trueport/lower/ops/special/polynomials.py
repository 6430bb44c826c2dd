"""Orthogonal polynomials of a degree that is itself a tensor, by their recurrences, in eager's dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.exact.precise import function
from trueport.lower.exact.series import any_of
from trueport.lower.loops import loop_while
from trueport.lower.ops.special.gamma import spread
from trueport.lower.ops.special.normal import DOUBLE, working
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

Next = Callable[[Builder, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(x, the degree k as a float, polynomial k - 1, polynomial k - 2) -> polynomial k"""
NAMES = ("", ".x_scalar", ".n_scalar")


def _operands(op: Builder, x: Operand, n: Operand) -> tuple[Tensor, Tensor]:
    """x in eager's dtype; the degree as whole numbers in it. Eager rounds the degree towards zero."""
    dtype = working(op, op.const(0.0)).element
    x = working(op, x) if isinstance(x, Tensor) else op.scalar(x, dtype)
    degree = working(op, n) if isinstance(n, Tensor) else op.scalar(n, dtype)
    degree = op.Where(op.Less(degree, 0), op.Ceil(degree), op.Floor(degree))
    return spread(op, x, op.result.shape), spread(op, degree, op.result.shape)


def _recurrence(op: Builder, x: Tensor, n: Tensor, first: Tensor, following: Next, needed: Tensor) -> Tensor:
    """Polynomial n where `needed`; `first` is that of degree 1."""
    one = spread(op, op.const(1.0, x.element), op.result.shape)
    climbing = op.And(needed, op.Greater(n, 1))
    climbing.settle(op.result.shape)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        before, now, climbing = states
        k = op.cast(op.Add(i, 2), x.element)
        after = following(op, x, k, now, before)
        before = op.Where(climbing, now, before)
        now = op.Where(climbing, after, now)
        climbing = op.And(op.And(climbing, op.Less(k, n)), op.Not(op.IsNaN(now)))
        return any_of(op, climbing), [before, now, climbing]

    first = spread(op, first, op.result.shape)
    _, now, _ = loop_while(op, 2**31, [one, first, climbing], body)
    found = op.Where(op.Equal(n, 0), one, now)
    return op.Where(op.Less(n, 0), op.const(0.0, x.element), found)


def _fused(op: Builder, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b - c in one rounding, as eager's compiler writes it: the product alone may overflow. float64 has no wider
    dtype."""
    if a.element == DOUBLE:
        return op.Sub(op.Mul(a, b), c)
    wide = op.Sub(op.Mul(op.cast(a, DOUBLE), op.cast(b, DOUBLE)), op.cast(c, DOUBLE))
    return op.cast(wide, a.element)


def _chebyshev_next(op: Builder, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return _fused(op, op.Add(x, x), now, before)


@dataclass(frozen=True)
class _Kind:
    """One of the four kinds of Chebyshev's polynomials.

    Above the degree `closed`, eager takes angles between -1 and 1. `offset` is added to 2 * x to give the polynomial of
    degree 1.
    """

    letter: str
    closed: int
    shifted_closed: int
    offset: float


_KINDS = (_Kind("t", 6, 6, 0.0), _Kind("u", 8, 6, 0.0), _Kind("v", 8, 6, -1.0), _Kind("w", 8, 4, 1.0))


def _by_angle(op: Builder, kind: _Kind, x: Tensor, n: Tensor) -> Tensor:
    """Angles in eager's dtype, from an exact arc cosine: a large degree multiplies its last digit."""
    angle = op.cast(function(op, "Acos", op.cast(op.Clip(x, -1.0, 1.0), DOUBLE)), x.element)

    def wave(name: str, angle: Tensor) -> Tensor:
        result: Tensor = getattr(op, name)(op.cast(angle, DOUBLE))
        return result

    if kind.letter == "t":
        found = wave("Cos", op.Mul(n, angle))
    elif kind.letter == "u":
        found = op.Div(wave("Sin", op.Mul(op.Add(n, 1), angle)), wave("Sin", angle))
    else:
        name = "Cos" if kind.letter == "v" else "Sin"
        found = op.Div(wave(name, op.Mul(op.Add(n, 0.5), angle)), wave(name, op.Mul(angle, 0.5)))
    return op.cast(found, x.element)


def _at_one(op: Builder, kind: _Kind, n: Tensor) -> Tensor:
    one = op.const(1.0, n.element)
    return {"t": one, "u": op.Add(n, 1), "v": one, "w": op.Add(op.Add(n, n), 1)}[kind.letter]


def _at_minus_one(op: Builder, kind: _Kind, n: Tensor) -> Tensor:
    one = op.const(1.0, n.element)
    size = {"t": one, "u": op.Add(n, 1), "v": op.Add(op.Add(n, n), 1), "w": one}[kind.letter]
    is_even = op.Equal(op.Mod(n, op.const(2.0, n.element), fmod=1), 0)
    return op.Where(is_even, size, op.Neg(size))


def _chebyshev(op: Builder, kind: _Kind, x: Tensor, n: Tensor, closed: int) -> Tensor:
    size = op.Abs(x)
    inside, at_end = op.Less(size, 1), op.Equal(size, 1)
    by_angle = op.And(inside, op.Greater(n, closed))
    double = op.Add(x, x)
    first = x if kind.letter == "t" else op.Add(double, kind.offset)
    needed = op.Not(op.Or(by_angle, at_end))
    found = _recurrence(op, x, n, first, _chebyshev_next, needed)
    found = op.Where(by_angle, _by_angle(op, kind, x, n), found)
    ends = op.Where(op.Greater(x, 0), _at_one(op, kind, n), _at_minus_one(op, kind, n))
    return op.Where(op.And(at_end, op.GreaterOrEqual(n, 0)), ends, found)


def _register_chebyshev(kind: _Kind) -> None:
    @op(*(f"aten::special_chebyshev_polynomial_{kind.letter}{name}" for name in NAMES))
    def plain(op: Builder, x: Operand, n: Operand) -> Tensor:
        argument, degree = _operands(op, x, n)
        return _chebyshev(op, kind, argument, degree, kind.closed)

    @op(*(f"aten::special_shifted_chebyshev_polynomial_{kind.letter}{name}" for name in NAMES))
    def shifted(op: Builder, x: Operand, n: Operand) -> Tensor:
        argument, degree = _operands(op, x, n)
        moved = op.Sub(op.Add(argument, argument), 1)
        return _chebyshev(op, kind, moved, degree, kind.shifted_closed)


for _kind in _KINDS:
    _register_chebyshev(_kind)


@op(*(f"aten::special_hermite_polynomial_h{name}" for name in NAMES))
def hermite_h(op: Builder, x: Operand, n: Operand) -> Tensor:
    """special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor"""

    def following(op: Builder, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
        return _fused(op, op.Add(x, x), now, op.Mul(op.Mul(op.Sub(k, 1), 2.0), before))

    return _hermite(op, x, n, lambda x: op.Add(x, x), following)


@op(*(f"aten::special_hermite_polynomial_he{name}" for name in NAMES))
def hermite_he(op: Builder, x: Operand, n: Operand) -> Tensor:
    """special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor"""

    def following(op: Builder, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
        return _fused(op, x, now, op.Mul(op.Sub(k, 1), before))

    return _hermite(op, x, n, lambda x: x, following)


def _hermite(op: Builder, x: Operand, n: Operand, first: Callable[[Tensor], Tensor], following: Next) -> Tensor:
    """Above a degree that depends on the dtype, eager does not compute them."""
    argument, degree = _operands(op, x, n)
    most = 512.0 if argument.element == ir.DataType.DOUBLE else 128.0
    needed = op.LessOrEqual(degree, most)
    found = _recurrence(op, argument, degree, first(argument), following, needed)
    return op.Where(needed, found, op.const(math.nan, argument.element))


@op(*(f"aten::special_laguerre_polynomial_l{name}" for name in NAMES))
def laguerre_l(op: Builder, x: Operand, n: Operand) -> Tensor:
    """special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor"""
    argument, degree = _operands(op, x, n)

    def following(op: Builder, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
        last = op.Sub(k, 1)
        weight = op.Add(op.Add(last, last), op.Sub(1, x))
        return op.Div(_fused(op, weight, now, op.Mul(last, before)), k)

    return _recurrence(op, argument, degree, op.Sub(1, argument), following, op.Not(op.Equal(argument, 0)))


@op(*(f"aten::special_legendre_polynomial_p{name}" for name in NAMES))
def legendre_p(op: Builder, x: Operand, n: Operand) -> Tensor:
    """special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor"""
    argument, degree = _operands(op, x, n)

    def following(op: Builder, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
        last = op.Sub(k, 1)
        weight = op.Mul(op.Add(op.Add(last, last), 1), x)
        return op.Div(_fused(op, weight, now, op.Mul(last, before)), k)

    at_end = op.Equal(op.Abs(argument), 1)
    found = _recurrence(op, argument, degree, argument, following, op.Not(at_end))
    ends = op.Where(op.Greater(argument, 0), op.const(1.0, argument.element), _at_minus_one(op, _KINDS[0], degree))
    return op.Where(op.And(at_end, op.GreaterOrEqual(degree, 0)), ends, found)
