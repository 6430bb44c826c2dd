"""Division with rounding, as torch and Python divide: by every divisor, of every dividend, in every dtype.

Of floats it starts from the exact remainder, since the quotient may be rounded up to a whole number that it does not
reach (`1.0 // 0.1` is 9). Of integers:

ONNX's `Div` of integers rounds towards zero, and its `Mod` has the sign of the divisor. ONNX Runtime divides by the
processor's instruction, which kills the process where the lowest number of 32 or 64 bits is divided by -1; eager gives
the lowest number again. So a divisor that may be -1 is replaced by 1 there, and the answer is put right. (Of a division
towards zero eager dies there too: `Div` alone is right.) Nothing is subtracted from a dividend before it is divided:
that wraps around near the lowest number.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from trueport.lower.tensor import Emitter, Tensor

_KILLED = frozenset((ir.DataType.INT32, ir.DataType.INT64))
"""The dtypes whose lowest number the runtime cannot divide by -1. Narrower ones it divides as int32."""


def floor_div(op: Emitter, top: Tensor, bottom: Tensor, positive: bool = False) -> Tensor:
    """`top // bottom`, rounded down. `positive` says that every divisor is, which a constant says by itself.

    1. Without signs, rounding down and towards zero are one.
    2. By a positive divisor, the quotient is one too large where the product is above the dividend.
    3. By any other, where what is left has not the sign of the divisor.
    """
    if not top.element.is_signed():
        return op.Div(top, bottom)
    known = _known(bottom)
    if positive or (known and min(known) > 0):
        quotient = op.Div(top, bottom)
        return op.Sub(quotient, op.cast(op.Less(top, op.Mul(quotient, bottom)), top.element))
    minus_one, divisor = _without_minus_one(op, bottom)
    quotient = op.Div(top, divisor)
    rest = op.Sub(top, op.Mul(quotient, divisor))
    lower = op.Sub(quotient, op.cast(wrong_side(op, rest, divisor), top.element))
    return lower if minus_one is None else op.Where(minus_one, op.Neg(top), lower)


def floor_mod(op: Emitter, top: Tensor, bottom: Tensor) -> Tensor:
    """`top % bottom`: what `floor_div` leaves, with the sign of the divisor. By -1 as by 1 it is 0."""
    return op.Mod(top, _without_minus_one(op, bottom)[1])


def trunc_mod(op: Emitter, top: Tensor, bottom: Tensor) -> Tensor:
    """What division towards zero leaves, with the dividend's sign. `Mod(fmod=1)` of the runtime goes through double."""
    if top.element.itemsize < 8:
        return op.Mod(top, bottom, fmod=1)
    divisor = _without_minus_one(op, bottom)[1]
    return op.Sub(top, op.Mul(op.Div(top, divisor), divisor))


def float_floor_div(
    op: Emitter, top: Tensor, bottom: Tensor, rounded: Callable[[Tensor], Tensor] = lambda x: x
) -> Tensor:
    """`top // bottom` of floats; what is computed on the way is `rounded`."""
    rest = op.Mod(top, bottom, fmod=1)
    quotient = rounded(op.Div(rounded(op.Sub(top, rest)), bottom))
    quotient = op.Where(wrong_side(op, rest, bottom), rounded(op.Sub(quotient, 1)), quotient)
    floor = op.Floor(quotient)
    floor = op.Where(op.Greater(op.Sub(quotient, floor), 0.5), op.Add(floor, 1), floor)
    return op.Where(op.Equal(bottom, 0), op.Div(top, bottom), floor)


def float_floor_mod(op: Emitter, top: Tensor, bottom: Tensor) -> Tensor:
    """`top % bottom` of floats, with the sign of the divisor."""
    rest = op.Mod(top, bottom, fmod=1)
    return op.Where(wrong_side(op, rest, bottom), op.Add(rest, bottom), rest)


def wrong_side(op: Emitter, rest: Tensor, divisor: Tensor) -> Tensor:
    """Where a remainder with the sign of the dividend must move by one divisor."""
    return op.And(op.Not(op.Equal(rest, 0)), op.Xor(op.Less(rest, 0), op.Less(divisor, 0)))


def _without_minus_one(op: Emitter, divisor: Tensor) -> tuple[Tensor | None, Tensor]:
    """(where the divisor is -1, the divisor with 1 there); the first is None where it cannot be, or does no harm."""
    known = _known(divisor)
    if divisor.element not in _KILLED or (known is not None and -1 not in known):
        return None, divisor
    minus_one = op.Equal(divisor, -1)
    return minus_one, op.Where(minus_one, op.const(1, divisor.element), divisor)


def _known(x: Tensor) -> list[int] | None:
    """The numbers of a small constant."""
    content = x.const_value
    if content is None or content.size > 64:
        return None
    return [int(number) for number in content.numpy().reshape(-1)]
