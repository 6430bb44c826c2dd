"""What is equal, finite or not a number among complex numbers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.ops.complex.complexes import Operand, joined, raised
from trueport.lower.tensor import Tensor


@complex_op("aten::eq.Tensor", "aten::eq.Scalar")
def equal(op: Builder, self: Operand, other: Operand) -> Tensor:
    """eq.Tensor(Tensor self, Tensor other) -> Tensor"""
    pairs = self.pairs if isinstance(self, Complex) else other.pairs if isinstance(other, Complex) else None
    assert pairs is not None
    both = [x.pairs if isinstance(x, Complex) else _as_pairs(op, x, pairs.element) for x in (self, other)]
    same = op.Equal(*both)
    return op.And(*(op.Gather(same, op.const(i), axis=-1) for i in (0, 1)))


@complex_op("aten::ne.Tensor", "aten::ne.Scalar")
def not_equal(op: Builder, self: Operand, other: Operand) -> Tensor:
    """ne.Tensor(Tensor self, Tensor other) -> Tensor"""
    return op.Not(equal(op, self, other))


def _as_pairs(op: Builder, x: Any, dtype: ir.DataType) -> Tensor:
    if isinstance(x, complex):
        return op.const([x.real, x.imag], dtype)
    real = raised(op, op.scalar(x, dtype))
    return joined(op, real, op.Expand(op.const(0, dtype), op.Shape(real))).pairs


@complex_op("aten::isnan")
def isnan(op: Builder, self: Complex) -> Tensor:
    """isnan(Tensor self) -> Tensor"""
    return op.Or(op.IsNaN(self.real(op)), op.IsNaN(self.imaginary(op)))


@complex_op("aten::isinf")
def isinf(op: Builder, self: Complex) -> Tensor:
    """isinf(Tensor self) -> Tensor"""
    return op.Or(op.IsInf(self.real(op)), op.IsInf(self.imaginary(op)))


@complex_op("aten::isfinite")
def isfinite(op: Builder, self: Complex) -> Tensor:
    """isfinite(Tensor self) -> Tensor"""
    return op.Not(op.Or(isnan(op, self), isinf(op, self)))
