"""Arithmetic of complex numbers, on pairs. Operands are `Complex` where eager has complex tensors."""

from __future__ import annotations

from typing import Any

import torch

from trueport.capture.graph import Number
from trueport.lower.builder import Builder
from trueport.lower.complex_numbers import Complex, complex_only, complex_op
from trueport.lower.ops.binary import atan2
from trueport.lower.tensor import Tensor

Operand = Complex | Tensor | Number | complex | float


def joined(op: Builder, real: Tensor, imaginary: Tensor) -> Complex:
    """From parts that have a last axis of 1."""
    return Complex(op.Concat(real, imaginary, axis=-1))


def raised(op: Builder, x: Tensor) -> Tensor:
    """A real tensor with a last axis of 1, to broadcast with pairs."""
    return op.Unsqueeze(x, op.ints(-1))


def _dtype(op: Builder) -> torch.dtype:
    dtype = op.result.dtype
    return dtype.to_real() if dtype.is_complex else dtype


def as_complex(op: Builder, x: Operand) -> Complex:
    if isinstance(x, Complex):
        return x
    dtype = _dtype(op)
    if isinstance(x, complex):
        return Complex(op.const([x.real, x.imag], dtype))
    real = raised(op, op.scalar(x, dtype))
    return joined(op, real, op.Mul(real, 0))


def _is_real(x: Operand) -> bool:
    return not isinstance(x, Complex | complex)


def _times_real(op: Builder, z: Complex, x: Operand) -> Complex:
    return Complex(op.Mul(z.pairs, raised(op, op.scalar(x, z.pairs.element))))


@complex_op("aten::mul.Tensor", "aten::mul.Scalar")
def mul(op: Builder, self: Operand, other: Operand) -> Complex:
    """mul.Tensor(Tensor self, Tensor other) -> Tensor"""
    if isinstance(self, Complex) and _is_real(other):
        return _times_real(op, self, other)
    if isinstance(other, Complex) and _is_real(self):
        return _times_real(op, other, self)
    a, b = as_complex(op, self).parts(op)
    c, d = as_complex(op, other).parts(op)
    return joined(op, op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c)))


@complex_op("aten::add.Tensor", "aten::add.Scalar")
def add(op: Builder, self: Operand, other: Operand, alpha: float = 1) -> Complex:
    """add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return Complex(op.Add(as_complex(op, self).pairs, _scaled(op, other, alpha)))


@complex_op("aten::sub.Tensor", "aten::sub.Scalar")
def sub(op: Builder, self: Operand, other: Operand, alpha: float = 1) -> Complex:
    """sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return Complex(op.Sub(as_complex(op, self).pairs, _scaled(op, other, alpha)))


def _scaled(op: Builder, z: Operand, alpha: float) -> Tensor:
    pairs = as_complex(op, z).pairs
    return pairs if alpha == 1 else op.Mul(pairs, alpha)


@complex_op("aten::div.Tensor", "aten::div.Scalar")
def div(op: Builder, self: Operand, other: Operand) -> Complex:
    """div.Tensor(Tensor self, Tensor other) -> Tensor"""
    z = as_complex(op, self)
    if _is_real(other):
        return Complex(op.Div(z.pairs, raised(op, op.scalar(other, z.pairs.element))))
    divisor = as_complex(op, other)
    return Complex(op.Div(mul(op, z, conj(op, divisor)).pairs, _square_of_length(op, divisor, keepdims=1)))


@complex_op("aten::reciprocal")
def reciprocal(op: Builder, self: Complex) -> Complex:
    """reciprocal(Tensor self) -> Tensor"""
    return Complex(op.Div(conj(op, self).pairs, _square_of_length(op, self, keepdims=1)))


def _square_of_length(op: Builder, z: Complex, keepdims: int) -> Tensor:
    """The axis is counted from the front: ONNX Runtime does not reduce an empty tensor by an axis of -1."""
    return op.ReduceSumSquare(z.pairs, op.ints(z.rank), keepdims=keepdims)


@complex_only("aten::_conj", "aten::conj_physical", "aten::_conj_physical")
def conj(op: Builder, self: Any) -> Any:
    """_conj(Tensor(a) self) -> Tensor(a): a real number is its own conjugate, and autograd asks for it"""
    if isinstance(self, Tensor):
        return self
    return Complex(op.Mul(self.pairs, op.const([1, -1], self.pairs.element)))


@complex_op("aten::resolve_conj", "aten::resolve_neg", "aten::positive")
def same(op: Builder, self: Complex) -> Complex:
    """resolve_conj(Tensor(a) self) -> Tensor(a): the trace has no lazy conjugates"""
    return self


@complex_op("aten::abs")
def absolute(op: Builder, self: Complex) -> Tensor:
    """abs(Tensor self) -> Tensor"""
    return op.Sqrt(_square_of_length(op, self, keepdims=0))


@complex_op("aten::angle")
def angle(op: Builder, self: Complex) -> Tensor:
    """angle(Tensor self) -> Tensor"""
    return atan2(op, self.imaginary(op), self.real(op))


@complex_op("aten::exp")
def exp(op: Builder, self: Complex) -> Complex:
    """exp(Tensor self) -> Tensor"""
    real, imaginary = self.parts(op)
    length = op.Exp(real)
    return joined(op, op.Mul(length, op.Cos(imaginary)), op.Mul(length, op.Sin(imaginary)))


@complex_only("aten::view_as_real", "aten::view_as_real_copy")
def view_as_real(op: Builder, self: Complex) -> Tensor:
    """view_as_real(Tensor(a) self) -> Tensor(a)"""
    return self.pairs


@complex_only("aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_complex(op: Builder, self: Tensor) -> Complex:
    """view_as_complex(Tensor(a) self) -> Tensor(a)"""
    return Complex(self)


@complex_only("aten::complex")
def from_parts(op: Builder, real: Tensor, imag: Tensor) -> Complex:
    """complex(Tensor real, Tensor imag) -> Tensor"""
    sizes = op.result.shape
    return joined(op, raised(op, op.expand(real, sizes)), raised(op, op.expand(imag, sizes)))


@complex_only("aten::polar")
def polar(op: Builder, abs: Tensor, angle: Tensor) -> Complex:
    """polar(Tensor abs, Tensor angle) -> Tensor"""
    length, turn = raised(op, abs), raised(op, angle)
    return joined(op, op.Mul(length, op.Cos(turn)), op.Mul(length, op.Sin(turn)))


@complex_op("aten::_to_copy")
def to_copy(op: Builder, self: Operand, *, dtype: torch.dtype | None = None, **_: Any) -> Complex | Tensor:
    """_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor; to a real dtype, the real part"""
    if not isinstance(self, Complex):
        return as_complex(op, self)
    if dtype is None or dtype.is_complex:
        return Complex(op.cast(self.pairs, _dtype(op)))
    return op.cast(self.real(op), dtype)


@complex_op("aten::where.self")
def where(op: Builder, condition: Tensor, self: Operand, other: Operand) -> Complex:
    """where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"""
    return Complex(op.Where(raised(op, condition), as_complex(op, self).pairs, as_complex(op, other).pairs))


@complex_op("aten::mm", "aten::bmm", "aten::matmul", "aten::mv", "aten::dot")
def matmul(op: Builder, self: Complex, mat2: Complex) -> Complex:
    """bmm(Tensor self, Tensor mat2) -> Tensor"""
    a, b, c, d = self.real(op), self.imaginary(op), mat2.real(op), mat2.imaginary(op)
    real = op.Sub(op.MatMul(a, c), op.MatMul(b, d))
    return joined(op, raised(op, real), raised(op, op.Add(op.MatMul(a, d), op.MatMul(b, c))))
