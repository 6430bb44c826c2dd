"""Elementwise operators of two tensors or more. Operands arrive in the dtype in which eager computes."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir
import torch

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.exact.division import float_floor_div, float_floor_mod, floor_div, floor_mod, trunc_mod
from trueport.lower.exact.precise import function, log1p
from trueport.lower.ops.integers import integer_power
from trueport.lower.ops.unary import trunc
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

Scalar = bool | int | float | Number
BOOL = ir.DataType.BOOL


def _dtype(*operands: Operand) -> ir.DataType:
    """The dtype that the operands were brought to; at least one is a tensor."""
    return next(x.element for x in operands if isinstance(x, Tensor))


def _scaled(op: Builder, x: Operand, alpha: Scalar, dtype: ir.DataType) -> Operand:
    if isinstance(alpha, Number) or alpha != 1:
        return op.Mul(x if isinstance(x, Tensor) else op.scalar(x, dtype), alpha)
    return x


@op("aten::add.Tensor", "aten::add.Scalar")
def add(op: Builder, self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    if self.dtype == BOOL:
        return op.Or(self, other)
    return op.Add(self, _scaled(op, other, alpha, self.element))


@op("aten::sub.Tensor", "aten::sub.Scalar")
def sub(op: Builder, self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return op.Sub(self, _scaled(op, other, alpha, self.element))


@op("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(op: Builder, self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"""
    return op.Sub(other, _scaled(op, self, alpha, self.element))


@op("aten::mul.Tensor", "aten::mul.Scalar")
def mul(op: Builder, self: Tensor, other: Operand) -> Tensor:
    """mul.Tensor(Tensor self, Tensor other) -> Tensor"""
    return op.And(self, other) if self.dtype == BOOL else op.Mul(self, other)


@op("aten::div.Tensor", "aten::div.Scalar", "aten::true_divide.Tensor", "aten::true_divide.Scalar")
def div(op: Builder, self: Tensor, other: Operand) -> Tensor:
    """div.Tensor(Tensor self, Tensor other) -> Tensor"""
    return op.Div(self, other)


@op("aten::div.Tensor_mode", "aten::div.Scalar_mode")
def div_mode(op: Builder, self: Tensor, other: Operand, *, rounding_mode: str | None) -> Tensor:
    """div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"""
    if rounding_mode == "floor":
        return floor_divide(op, self, other)
    if rounding_mode != "trunc" or not self.element.is_floating_point():
        return op.Div(self, other)  # ONNX's division of integers rounds towards zero
    return trunc(op, _rounded(op, other)(op.Div(_single(op, self), _single(op, other))))


def _single(op: Builder, x: Operand) -> Operand:
    """A float16 in float32."""
    return op.cast(x, ir.DataType.FLOAT) if isinstance(x, Tensor) and x.dtype == ir.DataType.FLOAT16 else x


def _rounded(op: Builder, divisor: Operand) -> Callable[[Tensor], Tensor]:
    """What happens to a number on the way to a quotient. By a tensor, eager divides half precision step by step, each
    rounded; by one number it rounds at the end only."""
    halves = op.result.dtype in (torch.float16, torch.bfloat16)
    if not halves or not isinstance(divisor, Tensor) or all(size == 1 for size in divisor.known_sizes):
        return lambda x: x
    return lambda x: op.cast(op.cast(x, op.result.dtype), ir.DataType.FLOAT)


@op("aten::floor_divide", "aten::floor_divide.Scalar")
def floor_divide(op: Builder, self: Operand, other: Operand) -> Tensor:
    """floor_divide(Tensor self, Tensor other) -> Tensor"""
    dtype = _dtype(self, other)
    if not dtype.is_floating_point():
        return floor_div(op, op.scalar(self, dtype), op.scalar(other, dtype))
    inner = ir.DataType.FLOAT if dtype == ir.DataType.FLOAT16 else dtype
    return float_floor_div(op, op.scalar(self, inner), op.scalar(other, inner), _rounded(op, other))


@op("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(op: Builder, self: Operand, other: Operand) -> Tensor:
    """remainder.Tensor(Tensor self, Tensor other) -> Tensor, with the sign of the divisor"""
    dtype = _dtype(self, other)
    rest = float_floor_mod if dtype.is_floating_point() else floor_mod
    return rest(op, op.scalar(self, dtype), op.scalar(other, dtype))


@op("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(op: Builder, self: Tensor, other: Operand) -> Tensor:
    """fmod.Tensor(Tensor self, Tensor other) -> Tensor, with the sign of the dividend"""
    divisor = op.scalar(other, self.element)
    return op.Mod(self, divisor, fmod=1) if self.element.is_floating_point() else trunc_mod(op, self, divisor)


@op("aten::pow.Tensor_Scalar")
def pow_scalar(op: Builder, self: Tensor, exponent: Scalar) -> Tensor:
    """pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor; the exponents that eager computes without `pow`."""
    if isinstance(exponent, Number):
        return power(op, self, exponent)
    if exponent == 1:
        return self
    if exponent == 2:
        return op.Mul(self, self)
    if exponent == 3:
        return op.Mul(op.Mul(self, self), self)
    if self.element.is_floating_point():
        if exponent == 0.5:
            return op.Sqrt(self)
        if exponent == -0.5:
            return op.Reciprocal(op.Sqrt(self))
        if exponent == -1:
            return op.Reciprocal(self)
        if exponent == -2:
            return op.Reciprocal(op.Mul(self, self))
    return power(op, self, exponent)


@op("aten::pow.Tensor_Tensor", "aten::pow.Scalar", "aten::float_power.Tensor_Tensor", "aten::float_power.Tensor_Scalar")
def power(op: Builder, self: Operand, exponent: Operand) -> Tensor:
    """pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"""
    dtype = _dtype(self, exponent)
    base, power = op.scalar(self, dtype), op.scalar(exponent, dtype)
    return op.Pow(base, power) if dtype.is_floating_point() else integer_power(op, base, power)


@op("aten::maximum")
def maximum(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """maximum(Tensor self, Tensor other) -> Tensor"""
    return op.Or(self, other) if self.dtype == BOOL else op.Max(self, other)


@op("aten::minimum")
def minimum(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """minimum(Tensor self, Tensor other) -> Tensor"""
    return op.And(self, other) if self.dtype == BOOL else op.Min(self, other)


@op("aten::fmax")
def fmax(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """fmax(Tensor self, Tensor other) -> Tensor: a number wins over NaN"""
    return _but_nan(op, op.Max(self, other), self, other)


@op("aten::fmin")
def fmin(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """fmin(Tensor self, Tensor other) -> Tensor: a number wins over NaN"""
    return _but_nan(op, op.Min(self, other), self, other)


def _but_nan(op: Builder, result: Tensor, self: Tensor, other: Tensor) -> Tensor:
    if not self.element.is_floating_point():
        return result
    return op.Where(op.IsNaN(self), other, op.Where(op.IsNaN(other), self, result))


@op("aten::atan2")
def atan2(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """atan2(Tensor self, Tensor other) -> Tensor: the angle of the point (other, self)

    A zero has a sign, which decides between pi and -pi; two infinities are as far as each other.
    """
    slope = op.Div(self, other)
    slope = op.Where(op.And(op.IsInf(self), op.IsInf(other)), op.Mul(op.Sign(self), op.Sign(other)), slope)
    slope = op.Where(op.And(op.Equal(self, 0), op.Equal(other, 0)), self, slope)
    angle = function(op, "Atan", slope)
    pi = op.const(math.pi, self.element)
    behind = op.Where(is_negative(op, self), op.Sub(angle, pi), op.Add(angle, pi))
    return op.Where(is_negative(op, other), behind, angle)


@op("aten::hypot")
def hypot(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """hypot(Tensor self, Tensor other) -> Tensor; scaled by the larger one, so that no square overflows"""
    a, b = op.Abs(self), op.Abs(other)
    larger = op.Max(a, b)
    share = op.Div(op.Min(a, b), op.Where(op.Equal(larger, 0), op.const(1.0, self.element), larger))
    length = op.Mul(larger, op.Sqrt(op.Add(op.Mul(share, share), 1)))
    infinite = op.Or(op.IsInf(self), op.IsInf(other))
    return op.Where(infinite, op.const(math.inf, self.element), length)


@op("aten::copysign.Tensor", "aten::copysign.Scalar")
def copysign(op: Builder, self: Tensor, other: Operand) -> Tensor:
    """copysign.Tensor(Tensor self, Tensor other) -> Tensor"""
    size = op.Abs(self)
    return op.Where(is_negative(op, op.scalar(other, self.element)), op.Neg(size), size)


def is_negative(op: Builder, x: Tensor) -> Tensor:
    """The sign of each number, which a zero has too."""
    return op.Or(op.Less(x, 0), op.And(op.Equal(x, 0), op.Less(op.Reciprocal(x), 0)))


@op("aten::heaviside")
def heaviside(op: Builder, self: Tensor, values: Tensor) -> Tensor:
    """heaviside(Tensor self, Tensor values) -> Tensor"""
    return op.Where(op.Equal(self, 0), values, op.cast(op.Greater(self, 0), self.element))


@op("aten::xlogy.Tensor", "aten::xlogy.Scalar_Self", "aten::xlogy.Scalar_Other", "aten::special_xlogy")
def xlogy(op: Builder, self: Operand, other: Operand) -> Tensor:
    """xlogy.Tensor(Tensor self, Tensor other) -> Tensor"""
    dtype = _dtype(self, other)
    factor, inside = op.scalar(self, dtype), op.scalar(other, dtype)
    product = op.Where(op.Equal(factor, 0), op.const(0.0, dtype), op.Mul(factor, op.Log(inside)))
    return op.Where(op.IsNaN(inside), inside, product)


@op("aten::logaddexp")
def logaddexp(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """logaddexp(Tensor self, Tensor other) -> Tensor, from the larger one so that nothing overflows"""
    larger = op.Max(self, other)
    apart = op.Abs(op.Sub(self, other))
    sum_ = op.Add(larger, log1p(op, op.Exp(op.Neg(apart))))
    return op.Where(op.Equal(self, other), op.Add(self, math.log(2)), sum_)


@op("aten::logaddexp2")
def logaddexp2(op: Builder, self: Tensor, other: Tensor) -> Tensor:
    """logaddexp2(Tensor self, Tensor other) -> Tensor"""
    return op.Mul(logaddexp(op, op.Mul(self, math.log(2)), op.Mul(other, math.log(2))), 1 / math.log(2))


@op("aten::lerp.Scalar", "aten::lerp.Tensor")
def lerp(op: Builder, self: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor, from the nearer end: exact at both"""
    apart = op.Sub(end, self)
    if isinstance(weight, bool | int | float):
        return op.Add(self, op.Mul(apart, weight)) if abs(weight) < 0.5 else op.Sub(end, op.Mul(apart, 1 - weight))
    share = op.scalar(weight, self.element)
    from_self, from_end = op.Add(self, op.Mul(apart, share)), op.Sub(end, op.Mul(apart, op.Sub(1, share)))
    return op.Where(op.Less(op.Abs(share), 0.5), from_self, from_end)


@op("aten::addcmul")
def addcmul(op: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    return op.Add(self, _scaled(op, op.Mul(tensor1, tensor2), value, self.element))


@op("aten::addcdiv")
def addcdiv(op: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    return op.Add(self, op.Div(_scaled(op, tensor1, value, self.element), tensor2))
