"""Divisors of whole numbers."""

from __future__ import annotations

from trueport.lower.builder import Builder
from trueport.lower.loops import loop_while
from trueport.lower.ops.special_gamma import spread
from trueport.lower.series import any_of
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_ROUNDS = 128
"""More than Euclid's algorithm needs for any 64-bit numbers: the worst are neighbours in Fibonacci's sequence."""


@op("aten::gcd")
def gcd(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """gcd(Tensor self, Tensor other) -> Tensor, by Euclid's algorithm"""
    a, b = (spread(op, op.Abs(x), op.result.shape) for x in (self, other))

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        a, b = states
        going = op.Not(op.Equal(b, 0))
        rest = op.Mod(a, op.Where(going, b, op.const(1, b.element)))
        a, b = op.Where(going, b, a), op.Where(going, rest, b)
        return any_of(op, op.Not(op.Equal(b, 0))), [a, b]

    return loop_while(op, _ROUNDS, [a, b], body)[0]


@op("aten::lcm")
def lcm(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """lcm(Tensor self, Tensor other) -> Tensor"""
    divisor = gcd(op, self, other)
    nothing = op.Equal(divisor, 0)
    part = op.Div(self, op.Where(nothing, op.const(1, divisor.element), divisor))
    return op.Where(nothing, op.const(0, divisor.element), op.Abs(op.Mul(part, other)))
