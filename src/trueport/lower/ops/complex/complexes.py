"""Arithmetic of complex numbers, on pairs. Operands are `Complex` where eager has complex tensors."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import torch

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_only, complex_op
from trueport.lower.dtypes import torch_dtype
from trueport.lower.ops.binary import atan2, hypot
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
    found = joined(op, real, op.Expand(op.const(0, dtype), op.Shape(real)))
    if isinstance(x, Tensor) and x.sizes is not None:
        found.pairs.settle((*x.sizes, 2))
    return found


def _is_real(x: Operand) -> bool:
    return not isinstance(x, Complex | complex)


def _turned(op: Builder, z: Complex) -> Tensor:
    """-i times the number, as pairs: (b, -a)."""
    other_way = op.Gather(z.pairs, op.ints(1, 0), axis=-1)
    return op.Mul(other_way, op.const([1, -1], z.pairs.element))


def _times_real(op: Builder, z: Complex, x: Operand) -> Complex:
    """Eager makes a complex number of x, and so 0 meets the other part: infinity becomes NaN, and -0 may become 0."""
    product = op.Mul(z.pairs, raised(op, op.scalar(x, z.pairs.element)))
    return Complex(op.Sub(product, op.Mul(_turned(op, z), 0)))


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
def add(op: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Complex:
    """add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return Complex(op.Add(as_complex(op, self).pairs, _second(op, other, alpha)))


@complex_op("aten::sub.Tensor", "aten::sub.Scalar")
def sub(op: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Complex:
    """sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"""
    return Complex(op.Sub(as_complex(op, self).pairs, _second(op, other, alpha)))


def _second(op: Builder, z: Operand, alpha: Operand) -> Tensor:
    """What is added: eager multiplies it by alpha, even by 1, and so an infinite part makes the other one NaN."""
    if not isinstance(alpha, int | float) or alpha != 1:
        return mul(op, as_complex(op, z), alpha).pairs
    if isinstance(z, Complex):
        return op.Sub(z.pairs, op.Mul(_turned(op, z), 0))
    if isinstance(z, Tensor):
        real = raised(op, op.scalar(z, _dtype(op)))
        return joined(op, real, op.Add(op.Mul(real, 0), 0)).pairs
    return as_complex(op, z).pairs


def scaled(op: Builder, z: Operand, by: Operand) -> Complex:
    """A number times a factor of the call, which mostly is 1."""
    return as_complex(op, z) if isinstance(by, int | float) and by == 1 else mul(op, as_complex(op, z), by)


@complex_op("aten::div.Tensor", "aten::div.Scalar")
def div(op: Builder, self: Operand, other: Operand) -> Complex:
    """div.Tensor(Tensor self, Tensor other) -> Tensor

    By the smaller part of the divisor over the larger one, as eager does it: no square can overflow. Of a divisor that
    is zero, both parts are divided by it.
    """
    z = as_complex(op, self)
    turned = _turned(op, z)
    if isinstance(other, int | float) and other != 0:
        return Complex(op.Div(op.Add(z.pairs, op.Mul(turned, 0)), float(other)))
    c, d = as_complex(op, other).parts(op)
    size, other_size = op.Abs(c), op.Abs(d)
    is_first = op.GreaterOrEqual(size, other_size)
    larger, smaller = op.Where(is_first, c, d), op.Where(is_first, d, c)
    ratio = op.Div(smaller, larger)
    one, two = op.Where(is_first, z.pairs, turned), op.Where(is_first, turned, z.pairs)
    above = op.Add(one, op.Mul(two, ratio))
    quotient = op.Mul(above, op.Reciprocal(op.Add(larger, op.Mul(smaller, ratio))))
    nothing = op.Equal(op.Add(size, other_size), 0)
    return Complex(op.Where(nothing, op.Div(z.pairs, size), quotient))


@complex_op("aten::reciprocal")
def reciprocal(op: Builder, self: Complex) -> Complex:
    """reciprocal(Tensor self) -> Tensor: of 0, the real part is infinite"""
    return div(op, Complex(op.const([1, 0], self.pairs.element)), self)


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
    """abs(Tensor self) -> Tensor: in float64, where the squares of float32 neither overflow nor vanish

    An infinite part makes it infinite, whatever the other one is.
    """
    if self.pairs.element == ir.DataType.DOUBLE:
        return hypot(op, self.real(op), self.imaginary(op))
    real, imaginary = wide(op, self).parts(op)
    length = op.Sqrt(op.Add(op.Mul(real, real), op.Mul(imaginary, imaginary)))
    far = op.Or(op.IsInf(real), op.IsInf(imaginary))
    length = op.Where(far, op.const(math.inf, ir.DataType.DOUBLE), length)
    return op.cast(op.Squeeze(length, op.ints(-1)), self.pairs.element)


def wide(op: Builder, z: Complex) -> Complex:
    """The same numbers in float64."""
    pairs = op.cast(z.pairs, ir.DataType.DOUBLE)
    pairs.settle(z.pairs.sizes)
    return Complex(pairs)


@complex_op("aten::angle")
def angle(op: Builder, self: Complex) -> Tensor:
    """angle(Tensor self) -> Tensor"""
    return atan2(op, self.imaginary(op), self.real(op))


@complex_only("aten::view_as_real", "aten::view_as_real_copy")
def view_as_real(op: Builder, self: Complex) -> Tensor:
    """view_as_real(Tensor(a) self) -> Tensor(a)"""
    return self.pairs


@complex_only("aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_complex(op: Builder, self: Tensor) -> Complex:
    """view_as_complex(Tensor(a) self) -> Tensor(a)"""
    return Complex(self)


@complex_op("aten::view.dtype")
def view_dtype(op: Builder, self: Operand, dtype: torch.dtype) -> Complex | Tensor:
    """view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a): two real numbers for each complex one, or back"""
    sizes = op.result.shape
    if isinstance(self, Complex):
        if dtype is not torch_dtype(self.pairs.element):
            raise NotImplementedError(f"the bits of complex numbers are read as {dtype}, which they are not made of")
        return op.reshape(self.pairs, sizes)
    assert isinstance(self, Tensor)
    if torch_dtype(self.element) is not dtype.to_real():
        raise NotImplementedError(
            f"the bits of {self.element.name.lower()} are read as {dtype}, which are other numbers"
        )
    return Complex(op.reshape(self, (*sizes, 2)))


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
    """_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor; to a real dtype, the real part; to bool, whether
    either part is not 0
    """
    if not isinstance(self, Complex):
        return as_complex(op, self)
    if dtype is None or dtype.is_complex:
        return Complex(op.cast(self.pairs, _dtype(op)))
    return self.is_not_zero(op) if dtype is torch.bool else op.cast(self.real(op), dtype)


@complex_op("aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar")
def where(op: Builder, condition: Tensor, self: Operand, other: Operand) -> Complex:
    """where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"""
    return Complex(op.Where(raised(op, condition), as_complex(op, self).pairs, as_complex(op, other).pairs))
