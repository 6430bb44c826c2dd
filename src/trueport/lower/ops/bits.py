"""`x.view(torch.int32)` of floats, and other looks at the same bits as numbers of another kind.

No operator of ONNX's opset 20 does that. What the bits are is worked out: an integer's by division, a float's by its
sign, its exponent and its mantissa, all of it exact in float64 and int64. Which NaN a NaN is, is not: it has the usual
bits.

Elements are cut into words of at most 32 bits, unsigned, held as int64, the lowest first, and put together again.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.ops.floats import exponent_of, is_plain, times_power_of_two
from trueport.lower.ops.unary import signbit
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

DOUBLE, INT64 = ir.DataType.DOUBLE, ir.DataType.INT64
_MANTISSA = {
    ir.DataType.DOUBLE: (52, 1023),
    ir.DataType.FLOAT: (23, 127),
    ir.DataType.FLOAT16: (10, 15),
    ir.DataType.BFLOAT16: (7, 127),
}
"""For each dtype, the bits of its mantissa, and what is added to its exponent."""


@op("aten::view.dtype", "aten::view_copy.dtype")
def view_dtype(op: Builder, self: Tensor, _dtype: Any) -> Tensor:
    """view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"""
    to = onnx_dtype(op.result.dtype)
    before, after = (round(8 * kind.itemsize) for kind in (self.element, to))
    unit = min(before, after, 32)
    if before < after:
        pieces = op.reshape(self, (*op.result.shape, after // before))
        parts = [op.Gather(pieces, op.const(i), axis=-1) for i in range(after // before)]
        words = [word for part in parts for word in _words(op, part, unit)]
        return _number(op, words, unit, to)
    words = _words(op, self, unit)
    each = after // unit
    numbers = [_number(op, words[i : i + each], unit, to) for i in range(0, len(words), each)]
    if len(numbers) == 1:
        return numbers[0]
    return op.reshape(op.Concat(*(op.Unsqueeze(n, [-1]) for n in numbers), axis=-1), op.result.shape)


def _words(op: Builder, x: Tensor, unit: int) -> list[Tensor]:
    """The bits of each element, `unit` at a time."""
    bits = round(8 * x.element.itemsize)
    if x.element in _MANTISSA:
        sign, rest = _bits_of_float(op, x)
        halves = [op.Mod(rest, 2**32), op.Div(rest, 2**32)] if bits == 64 else [rest]
        halves[-1] = op.Add(halves[-1], op.Mul(sign, 2 ** (min(bits, 32) - 1)))
    else:
        whole = op.cast(x, INT64)
        low = op.Mod(whole, 2 ** min(bits, 32))
        halves = [low, op.Mod(op.Div(op.Sub(whole, low), 2**32), 2**32)] if bits == 64 else [low]
    if unit >= 32 or unit == bits:
        return halves
    return [op.Mod(op.Div(half, 2**at), 2**unit) for half in halves for at in range(0, min(bits, 32), unit)]


def _number(op: Builder, words: list[Tensor], unit: int, to: ir.DataType) -> Tensor:
    """The element of a dtype whose bits these are."""
    bits = round(8 * to.itemsize)
    per_half = max(min(bits, 32) // unit, 1)
    halves = [_joined(op, words[i : i + per_half], unit) for i in range(0, len(words), per_half)]
    top = 2 ** (min(bits, 32) - 1)
    high = op.GreaterOrEqual(halves[-1], top)
    if to in _MANTISSA:
        halves[-1] = op.Mod(halves[-1], top)
        return op.cast(_float_of_bits(op, high, _joined(op, halves, 32), to), to)
    if to.is_signed():
        halves[-1] = op.Where(high, op.Sub(halves[-1], 2 * top), halves[-1])
    return op.cast(_joined(op, halves, 32), to)


def _joined(op: Builder, words: list[Tensor], unit: int) -> Tensor:
    whole = words[0]
    for at, word in enumerate(words[1:], 1):
        whole = op.Add(whole, op.Mul(word, 2 ** (unit * at)))
    return whole


def _bits_of_float(op: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign, 0 or 1, and all other bits."""
    digits, bias = _MANTISSA[x.element]
    plain = is_plain(op, value := op.cast(x, DOUBLE))
    size = op.Abs(op.Where(plain, value, op.const(1.0, DOUBLE)))
    # The exponents of the smallest numbers are all the same; their mantissa has no leading 1.
    exponent = op.Max(op.Sub(exponent_of(op, size), 1.0), 1.0 - bias)
    scaled = op.cast(times_power_of_two(op, size, op.Sub(float(digits), exponent)), INT64)
    whole = op.Add(op.Mul(op.cast(op.Add(exponent, bias - 1.0), INT64), 2**digits), scaled)
    infinite = op.const((2 * bias + 1) * 2**digits)
    other = op.Where(op.IsNaN(value), op.Add(infinite, 2 ** (digits - 1)), infinite)
    whole = op.Where(plain, whole, op.Where(op.Equal(value, 0), op.const(0), other))
    return op.cast(signbit(op, value), INT64), whole


def _float_of_bits(op: Builder, negative: Tensor, rest: Tensor, to: ir.DataType) -> Tensor:
    digits, bias = _MANTISSA[to]
    exponent, mantissa = op.Div(rest, 2**digits), op.Mod(rest, 2**digits)
    tiny = op.Equal(exponent, 0)
    leading = op.Where(tiny, mantissa, op.Add(mantissa, 2**digits))
    power = op.Sub(op.cast(op.Max(exponent, 1), DOUBLE), float(bias + digits))
    size = times_power_of_two(op, op.cast(leading, DOUBLE), power)
    other = op.Where(op.Equal(mantissa, 0), op.const(float("inf"), DOUBLE), op.const(float("nan"), DOUBLE))
    size = op.Where(op.Equal(exponent, 2 * bias + 1), other, size)
    return op.Where(negative, op.Neg(size), size)
