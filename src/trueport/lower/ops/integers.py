"""Divisors and powers of whole numbers."""

from __future__ import annotations

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.exact.division import trunc_mod
from trueport.lower.exact.series import any_of
from trueport.lower.loops import loop_while
from trueport.lower.ops.special.gamma import spread
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_ROUNDS = 128
"""More than Euclid's algorithm needs for any 64-bit numbers: the worst are neighbours in Fibonacci's sequence."""


@op("aten::gcd")
def gcd(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """gcd(Tensor self, Tensor other) -> Tensor, by Euclid's algorithm

    In eager's order and with its remainders: the lowest number has no absolute value, and what comes of it has a sign.
    """
    a, b = (spread(op, op.Abs(x), op.result.shape) for x in (other, self))

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        a, b = states
        going = op.Not(op.Equal(b, 0))
        rest = trunc_mod(op, a, op.Where(going, b, op.const(1, b.element)))
        a, b = op.Where(going, b, a), op.Where(going, rest, b)
        return any_of(op, op.Not(op.Equal(b, 0))), [a, b]

    return loop_while(op, _ROUNDS, [a, b], body)[0]


@op("aten::lcm")
def lcm(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """lcm(Tensor self, Tensor other) -> Tensor; eager multiplies narrow integers in 32 bits"""
    wide = ir.DataType.INT32 if self.element.itemsize < 4 else self.element
    divisor = gcd(op, self, other)
    nothing = op.Equal(divisor, 0)
    safe = op.Where(nothing, op.const(1, divisor.element), divisor)
    part, factor, safe = (op.cast(x, wide) for x in (self, other, safe))
    multiple = op.cast(op.Abs(op.Mul(op.Div(part, safe), factor)), self.element)
    return op.Where(nothing, op.const(0, divisor.element), multiple)


def integer_power(op: Builder, base: Tensor, exponent: Tensor) -> Tensor:
    """Exact, and wrapping around as eager does: by the bits of the exponent, as many as its largest has.

    A negative exponent gives the integer part of the fraction: 0, but for 1 and -1.
    """
    dtype = base.element
    one, zero = op.const(1, dtype), op.const(0, dtype)
    negative = op.Less(exponent, 0)
    natural = op.Where(negative, zero, exponent)
    natural.settle(exponent.known_sizes)
    states = [op.expand(x, op.result.shape) for x in (one, base, natural)]

    def square(_: Tensor, before: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        result, factor, rest = before
        odd = op.Equal(op.Mod(rest, 2), 1)
        rest = op.Div(rest, 2)
        return any_of(op, op.Greater(rest, 0)), [
            op.Where(odd, op.Mul(result, factor), result),
            op.Mul(factor, factor),
            rest,
        ]

    found = loop_while(op, int(dtype.itemsize) * 8, states, square)[0]
    sign = op.Where(op.Equal(op.Mod(exponent, 2), 0), one, base)
    fraction = op.Where(op.Equal(base, 1), one, op.Where(op.Equal(base, -1), sign, zero)) if dtype.min else zero
    return op.Where(negative, fraction, found)
