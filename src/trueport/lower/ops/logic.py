"""Comparisons, logic, bits, and choosing between values."""

from __future__ import annotations

import onnx_ir as ir
import torch

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

BOOL = ir.DataType.BOOL
Scalar = bool | int | float | Number

_COMPARISONS = {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}
"""name.Tensor(Tensor self, Tensor other) -> Tensor, name.Scalar(Tensor self, Scalar other) -> Tensor"""

_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
"""name(Tensor self, Tensor other) -> Tensor"""

_BITWISE = {
    "bitwise_and": ("BitwiseAnd", "And"),
    "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"),
}
"""name.Tensor(Tensor self, Tensor other) -> Tensor, and with a Scalar on either side"""


def _register_comparison(name: str, onnx_name: str) -> None:
    @op(f"aten::{name}.Tensor", f"aten::{name}.Scalar")
    def translate(op: Builder, self: Tensor, other: Operand) -> Tensor:
        if self.dtype == BOOL and name != "eq":
            self, other = op.cast(self, ir.DataType.INT32), op.cast(op.scalar(other, BOOL), ir.DataType.INT32)
        result: Tensor = getattr(op, onnx_name)(self, other)
        return result


def _register_logical(name: str, onnx_name: str) -> None:
    @op(f"aten::{name}")
    def translate(op: Builder, self: Tensor, other: Tensor) -> Tensor:
        result: Tensor = getattr(op, onnx_name)(self, other)
        return result


def _register_bitwise(name: str, onnx_name: str, bool_name: str) -> None:
    @op(f"aten::{name}.Tensor", f"aten::{name}.Scalar", f"aten::{name}.Scalar_Tensor")
    def translate(op: Builder, self: Operand, other: Operand) -> Tensor:
        tensor = self if isinstance(self, Tensor) else other
        result: Tensor = getattr(op, bool_name if tensor.dtype == BOOL else onnx_name)(self, other)
        return result


for _name, _onnx_name in _COMPARISONS.items():
    _register_comparison(_name, _onnx_name)
for _name, _onnx_name in _LOGICAL.items():
    _register_logical(_name, _onnx_name)
for _name, (_onnx_name, _bool_name) in _BITWISE.items():
    _register_bitwise(_name, _onnx_name, _bool_name)


@op("aten::ne.Tensor", "aten::ne.Scalar")
def ne(op: Builder, self: Tensor, other: Operand) -> Tensor:
    """ne.Tensor(Tensor self, Tensor other) -> Tensor"""
    return op.Xor(self, other) if self.dtype == BOOL else op.Not(op.Equal(self, other))


@op(
    "aten::bitwise_left_shift.Tensor",
    "aten::bitwise_left_shift.Tensor_Scalar",
    "aten::bitwise_left_shift.Scalar_Tensor",
    "aten::__lshift__.Scalar",
    "aten::__lshift__.Tensor",
)
def left_shift(op: Builder, self: Operand, other: Operand) -> Tensor:
    """bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor

    ONNX shifts unsigned integers only; a shift to the left is a product.
    """
    self = op.scalar(self, op.result.dtype)
    shift = op.scalar(other, self.element)
    shifted = op.Mul(self, _power_of_two(op, op.Clip(shift, 0, _bits(self.element) - 1)))
    return op.Where(_is_shift(op, shift, _bits(self.element)), shifted, op.const(0, self.element))


@op(
    "aten::bitwise_right_shift.Tensor",
    "aten::bitwise_right_shift.Tensor_Scalar",
    "aten::bitwise_right_shift.Scalar_Tensor",
    "aten::__rshift__.Scalar",
    "aten::__rshift__.Tensor",
)
def right_shift(op: Builder, self: Operand, other: Operand) -> Tensor:
    """bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor: a division that rounds down, as signs demand

    By more bits than there are, only the sign is left.
    """
    self = op.scalar(self, op.result.dtype)
    signed = self.element.min < 0
    most = _bits(self.element) - 1 - int(signed)
    shift = op.scalar(other, self.element)
    divisor = _power_of_two(op, op.Clip(shift, 0, most))
    shifted = op.Div(op.Sub(self, op.Mod(self, divisor)), divisor)
    sign = op.Neg(op.cast(op.Less(self, 0), self.element)) if signed else op.const(0, self.element)
    return op.Where(_is_shift(op, shift, most + 1), shifted, sign)


def _bits(dtype: ir.DataType) -> int:
    return int(dtype.itemsize) * 8


def _is_shift(op: Builder, shift: Tensor, bits: int) -> Tensor:
    return op.And(op.GreaterOrEqual(shift, 0), op.Less(shift, bits))


def _power_of_two(op: Builder, exponent: Tensor) -> Tensor:
    """In the integer dtype of the exponent. The highest bit of a signed one is its lowest number."""
    power = op.Pow(op.const(2.0, ir.DataType.DOUBLE), op.cast(exponent, ir.DataType.DOUBLE))
    highest = _bits(exponent.element) - 1
    if exponent.element.min == 0:
        return op.cast(power, exponent.element)
    below = op.cast(op.Min(power, 2.0 ** (highest - 1)), exponent.element)
    return op.Where(op.Equal(exponent, highest), op.const(int(exponent.element.min), exponent.element), below)


@op("aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar")
def where(op: Builder, condition: Tensor, self: Operand, other: Operand) -> Tensor:
    """where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"""
    dtype = op.result.dtype
    return op.Where(op.cast(condition, BOOL), op.scalar(self, dtype), op.scalar(other, dtype))


@op("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
def masked_fill(op: Builder, self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"""
    return op.Where(op.cast(mask, BOOL), op.scalar(value, self.element), self)


@op("aten::clamp")
def clamp(op: Builder, self: Tensor, min: Scalar | None = None, max: Scalar | None = None) -> Tensor:
    """clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"""
    return _clamped(op, self, min, max)


@op("aten::clamp.Tensor")
def clamp_tensor(op: Builder, self: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"""
    return _clamped(op, self, min, max)


@op("aten::clamp_min", "aten::clamp_min.Tensor")
def clamp_min(op: Builder, self: Tensor, min: Operand) -> Tensor:
    """clamp_min(Tensor self, Scalar min) -> Tensor"""
    return _clamped(op, self, min, None)


@op("aten::clamp_max", "aten::clamp_max.Tensor")
def clamp_max(op: Builder, self: Tensor, max: Operand) -> Tensor:
    """clamp_max(Tensor self, Scalar max) -> Tensor"""
    return _clamped(op, self, None, max)


@op("aten::hardtanh")
def hardtanh(op: Builder, self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"""
    if not self.element.is_floating_point():  # eager cuts the bounds off to the dtype of the tensor
        min_val, max_val = (x if isinstance(x, Number) else int(x) for x in (min_val, max_val))
    return _clamped(op, self, min_val, max_val)


def _clamped(op: Builder, self: Tensor, low: Operand, high: Operand) -> Tensor:
    """`Clip` where the bounds are numbers; tensors may broadcast, which only `Max` and `Min` do. Of a float with one
    bound `Clip` would also cut an infinity off: its other bound is then the largest finite number."""
    one_sided = (low is None or high is None) and self.element.is_floating_point()
    if not (isinstance(low, Tensor) or isinstance(high, Tensor) or one_sided):
        return op.Clip(self, low, high)
    if low is not None:
        self = op.Max(self, low)
    return self if high is None else op.Min(self, high)


@op("aten::isclose")
def isclose(
    op: Builder, self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor"""
    same = op.Equal(self, other)
    floats = self.element.is_floating_point()
    if rtol == 0 and atol == 0 and not (floats and equal_nan):
        return same
    if not floats:  # eager subtracts integers as floats
        self, other = (op.cast(x, torch.get_default_dtype()) for x in (self, other))
        equal_nan = False
    apart = op.Abs(op.Sub(self, other))
    near = op.LessOrEqual(apart, op.Add(op.Mul(op.Abs(other), rtol), atol))
    # An infinite distance is never near, however wide the tolerance.
    near = op.And(near, op.Not(op.Or(op.IsInf(apart), op.IsInf(other))))
    same = op.Or(same, near)
    return op.Or(same, op.And(op.IsNaN(self), op.IsNaN(other))) if equal_nan else same
