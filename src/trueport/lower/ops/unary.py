"""Elementwise operators of one tensor. Operands arrive in the dtype in which eager computes (see dtypes.align)."""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.exact import precise
from trueport.lower.exact.precise import function
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

SAME_IN_ONNX = {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "log": "Log",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "special_erf": "Erf",
    "special_expit": "Sigmoid",
}
"""name(Tensor self) -> Tensor, one node each."""

WHOLE_NUMBERS_STAY = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
"""name(Tensor self) -> Tensor: nothing to do for integers, for which ONNX does not have them."""


def _register_same(name: str, onnx_name: str) -> None:
    @op(f"aten::{name}")
    def translate(op: Builder, self: Tensor) -> Tensor:
        return function(op, onnx_name, self)


def _register_rounding(name: str, onnx_name: str) -> None:
    @op(f"aten::{name}")
    def translate(op: Builder, self: Tensor) -> Tensor:
        result: Tensor = getattr(op, onnx_name)(self) if self.element.is_floating_point() else self
        return result


for _name, _onnx_name in SAME_IN_ONNX.items():
    _register_same(_name, _onnx_name)
for _name, _onnx_name in WHOLE_NUMBERS_STAY.items():
    _register_rounding(_name, _onnx_name)


@op("aten::positive", "aten::resolve_conj", "aten::resolve_neg")
def positive(op: Builder, self: Tensor) -> Tensor:
    """positive(Tensor(a) self) -> Tensor(a)"""
    return self


@op("aten::abs")
def absolute(op: Builder, self: Tensor) -> Tensor:
    """abs(Tensor self) -> Tensor"""
    return self if self.dtype == ir.DataType.BOOL else op.Abs(self)


@op("aten::sign", "aten::sgn")
def sign(op: Builder, self: Tensor) -> Tensor:
    """sign(Tensor self) -> Tensor; of NaN it is 0 in eager, and NaN in ONNX"""
    if self.dtype == ir.DataType.BOOL:
        return self
    if not self.element.is_floating_point():
        return op.Sign(self)
    return op.Where(op.IsNaN(self), op.const(0, self.element), op.Sign(self))


@op("aten::angle")
def angle(op: Builder, self: Tensor) -> Tensor:
    """angle(Tensor self) -> Tensor: of a real number 0, or pi below zero"""
    turned = op.Where(op.Less(self, 0), op.const(math.pi, self.element), op.const(0, self.element))
    return op.Where(op.IsNaN(self), self, turned)


@op("aten::square")
def square(op: Builder, self: Tensor) -> Tensor:
    """square(Tensor self) -> Tensor"""
    return op.Mul(self, self)


@op("aten::rsqrt")
def rsqrt(op: Builder, self: Tensor) -> Tensor:
    """rsqrt(Tensor self) -> Tensor"""
    return op.Reciprocal(op.Sqrt(self))


@op("aten::log2")
def log2(op: Builder, self: Tensor) -> Tensor:
    """log2(Tensor self) -> Tensor"""
    return precise.logarithm(op, self, 2)


@op("aten::log10")
def log10(op: Builder, self: Tensor) -> Tensor:
    """log10(Tensor self) -> Tensor"""
    return precise.logarithm(op, self, 10)


@op("aten::log1p", "aten::special_log1p")
def log1p(op: Builder, self: Tensor) -> Tensor:
    """log1p(Tensor self) -> Tensor"""
    return precise.log1p(op, self)


@op("aten::expm1", "aten::special_expm1")
def expm1(op: Builder, self: Tensor) -> Tensor:
    """expm1(Tensor self) -> Tensor

    `exp(x) - 1` loses every digit of a small x; `tanh(x / 2) * (exp(x) + 1)` is the same and does not.
    """
    return op.Mul(op.Tanh(op.Mul(self, 0.5)), op.Add(op.Exp(self), 1))


@op("aten::exp2", "aten::special_exp2")
def exp2(op: Builder, self: Tensor) -> Tensor:
    """exp2(Tensor self) -> Tensor"""
    return op.Pow(op.const(2.0, self.element), self)


@op("aten::trunc", "aten::fix")
def trunc(op: Builder, self: Tensor) -> Tensor:
    """trunc(Tensor self) -> Tensor"""
    if not self.element.is_floating_point():
        return self
    return op.Mul(op.Sign(self), op.Floor(op.Abs(self)))  # -0.5 gives -0.0


@op("aten::frac")
def frac(op: Builder, self: Tensor) -> Tensor:
    """frac(Tensor self) -> Tensor"""
    return op.Sub(self, trunc(op, self))


@op("aten::round.decimals")
def round_decimals(op: Builder, self: Tensor, *, decimals: int) -> Tensor:
    """round.decimals(Tensor self, *, int decimals) -> Tensor"""
    if not self.element.is_floating_point():
        return self
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return op.Div(op.Round(op.Mul(self, scale)), scale)
    return op.Mul(op.Round(op.Div(self, scale)), scale)


@op("aten::bitwise_not")
def bitwise_not(op: Builder, self: Tensor) -> Tensor:
    """bitwise_not(Tensor self) -> Tensor"""
    return op.Not(self) if self.dtype == ir.DataType.BOOL else op.BitwiseNot(self)


@op("aten::logical_not")
def logical_not(op: Builder, self: Tensor) -> Tensor:
    """logical_not(Tensor self) -> Tensor"""
    return op.Not(self)


@op("aten::isnan")
def isnan(op: Builder, self: Tensor) -> Tensor:
    """isnan(Tensor self) -> Tensor"""
    return op.IsNaN(self) if self.element.is_floating_point() else _everywhere(op, self, False)


@op("aten::isinf")
def isinf(op: Builder, self: Tensor) -> Tensor:
    """isinf(Tensor self) -> Tensor"""
    return op.IsInf(self) if self.element.is_floating_point() else _everywhere(op, self, False)


@op("aten::isfinite")
def isfinite(op: Builder, self: Tensor) -> Tensor:
    """isfinite(Tensor self) -> Tensor"""
    if not self.element.is_floating_point():
        return _everywhere(op, self, True)
    return op.Not(op.Or(op.IsNaN(self), op.IsInf(self)))


@op("aten::isposinf")
def isposinf(op: Builder, self: Tensor) -> Tensor:
    """isposinf(Tensor self) -> Tensor"""
    return op.IsInf(self, detect_negative=0) if self.element.is_floating_point() else _everywhere(op, self, False)


@op("aten::isneginf")
def isneginf(op: Builder, self: Tensor) -> Tensor:
    """isneginf(Tensor self) -> Tensor"""
    return op.IsInf(self, detect_positive=0) if self.element.is_floating_point() else _everywhere(op, self, False)


@op("aten::signbit")
def signbit(op: Builder, self: Tensor) -> Tensor:
    """signbit(Tensor self) -> Tensor; -0.0 has the sign bit set, which 1/x shows."""
    if not self.element.is_floating_point():
        return op.Less(self, 0)
    return op.Or(op.Less(self, 0), op.And(op.Equal(self, 0), op.Less(op.Reciprocal(self), 0)))


@op("aten::nan_to_num")
def nan_to_num(
    op: Builder, self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor"""
    if not self.element.is_floating_point():
        return self
    most = float(onnx_dtype(op.result.dtype).max)
    found = op.Where(op.IsNaN(self), op.const(nan or 0.0, self.element), self)
    high = op.const(most if posinf is None else posinf, self.element)
    low = op.const(-most if neginf is None else neginf, self.element)
    found = op.Where(op.IsInf(self, detect_negative=0), high, found)
    return op.Where(op.IsInf(self, detect_positive=0), low, found)


@op("aten::deg2rad")
def deg2rad(op: Builder, self: Tensor) -> Tensor:
    """deg2rad(Tensor self) -> Tensor"""
    return op.Mul(self, math.pi / 180)


@op("aten::rad2deg")
def rad2deg(op: Builder, self: Tensor) -> Tensor:
    """rad2deg(Tensor self) -> Tensor"""
    return op.Mul(self, 180 / math.pi)


@op("aten::sinc", "aten::special_sinc")
def sinc(op: Builder, self: Tensor) -> Tensor:
    """sinc(Tensor self) -> Tensor"""
    x = op.cast(self, ir.DataType.FLOAT) if self.dtype == ir.DataType.FLOAT16 else self  # pi has too few digits there
    angle = op.Mul(x, math.pi)
    return op.Where(op.Equal(x, 0), op.const(1.0, x.element), op.Div(op.Sin(angle), angle))


@op("aten::logit", "aten::special_logit")
def logit(op: Builder, self: Tensor, eps: float | None = None) -> Tensor:
    """logit(Tensor self, float? eps=None) -> Tensor"""
    if eps is not None:  # eager has both bounds in the dtype of the tensor, where 1 - eps may be 1
        low = torch.tensor(eps, dtype=op.result.dtype)
        self = op.Clip(self, low.item(), (1 - low).item())
    return op.Log(op.Div(self, op.Sub(1, self)))


def _everywhere(op: Builder, like: Tensor, value: bool) -> Tensor:
    return op.Expand(op.const(value), op.shape(like.known_sizes))
