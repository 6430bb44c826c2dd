"""Floating point numbers by their parts. ONNX has no view of the bits; powers of two are exact without one."""

from __future__ import annotations

import math

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

DOUBLE, INT32 = ir.DataType.DOUBLE, ir.DataType.INT32
_DIGITS = {
    ir.DataType.DOUBLE: (53, -1074),
    ir.DataType.FLOAT: (24, -149),
    ir.DataType.FLOAT16: (11, -24),
    ir.DataType.BFLOAT16: (8, -133),
}
"""For each dtype, the digits of its mantissa, and the exponent of its smallest number."""


def times_power_of_two(op: Builder, x: Tensor, exponent: Tensor) -> Tensor:
    """x * 2**exponent, of float64, in two steps: one power alone may not be representable."""
    half = op.Floor(op.Mul(exponent, 0.5))
    two = op.const(2.0, DOUBLE)
    return op.Mul(op.Mul(x, op.Pow(two, half)), op.Pow(two, op.Sub(exponent, half)))


def exponent_of(op: Builder, x: Tensor) -> Tensor:
    """e, for 2**(e - 1) <= |x| < 2**e, of what is finite and not zero, in float64."""
    guess = op.Add(op.Floor(op.Div(op.Log(op.Abs(x)), math.log(2))), 1)
    share = op.Abs(times_power_of_two(op, x, op.Neg(guess)))
    high, low = (op.cast(mask, DOUBLE) for mask in (op.GreaterOrEqual(share, 1), op.Less(share, 0.5)))
    return op.Sub(op.Add(guess, high), low)


def is_plain(op: Builder, x: Tensor) -> Tensor:
    return op.Not(op.Or(op.Equal(x, 0), op.Or(op.IsNaN(x), op.IsInf(x))))


@op("aten::frexp.Tensor")
def frexp(op: Builder, self: Tensor) -> tuple[Tensor, Tensor]:
    """frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)"""
    x = op.cast(self, DOUBLE)
    plain = is_plain(op, x)
    exponent = exponent_of(op, op.Where(plain, x, op.const(1.0, DOUBLE)))
    mantissa = op.Where(plain, times_power_of_two(op, x, op.Neg(exponent)), x)
    return mantissa, op.cast(op.Where(plain, exponent, op.const(0.0, DOUBLE)), INT32)


@op("aten::nextafter")
def nextafter(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """nextafter(Tensor self, Tensor other) -> Tensor"""
    dtype = onnx_dtype(op.result.dtype)
    if dtype not in _DIGITS or self.element != other.element:
        raise NotImplementedError(f"the neighbours of a number of dtype {dtype.name.lower()} are not known")
    digits, smallest = _DIGITS[dtype]
    x, towards = op.cast(self, DOUBLE), op.cast(other, DOUBLE)
    plain = is_plain(op, x)
    size = op.Abs(op.Where(plain, x, op.const(1.0, DOUBLE)))
    upwards = op.Greater(towards, x)
    outwards = op.Equal(upwards, op.Greater(x, 0))
    exponent = exponent_of(op, size)
    # A power of two is twice as close to its inner neighbour as to its outer one.
    at_power = op.Equal(times_power_of_two(op, size, op.Neg(exponent)), 0.5)
    inner = op.cast(op.And(at_power, op.Not(outwards)), DOUBLE)
    step = op.Max(op.Sub(op.Sub(exponent, float(digits)), inner), float(smallest))
    distance = times_power_of_two(op, op.const(1.0, DOUBLE), op.Where(plain, step, op.const(float(smallest), DOUBLE)))
    moved = op.Add(x, op.Where(upwards, distance, op.Neg(distance)))
    most = float(dtype.max)
    from_infinity = op.Mul(op.Sign(x), op.const(most, DOUBLE))
    moved = op.Where(op.IsInf(x), from_infinity, moved)
    # Beyond the largest number is infinity; a cast to a narrower dtype would round to the largest again.
    beyond = op.Greater(op.Abs(moved), most)
    moved = op.Where(beyond, op.Mul(op.Sign(moved), op.const(math.inf, DOUBLE)), moved)
    strange = op.Or(op.IsNaN(x), op.IsNaN(towards))
    moved = op.Where(op.Equal(x, towards), towards, moved)
    return op.Where(strange, op.const(math.nan, DOUBLE), moved)
