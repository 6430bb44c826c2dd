"""What is linear in two complex operands: products of matrices, convolutions, and sums of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.ops.complex.complexes import Operand, as_complex, conj, div, mul, scaled
from trueport.lower.ops.create import filled
from trueport.lower.ops.layers import convolution as convolutions
from trueport.lower.ops.linalg import products as linalg
from trueport.lower.tensor import Tensor

Bilinear = Callable[..., Tensor]


def _two_operands(function: Bilinear, *names: str) -> None:
    """What is linear in each of its first two operands; a third, if any, is added (a bias)."""

    @complex_op(*(f"aten::{name}" for name in names))
    def translate(op: Builder, self: Operand, other: Operand, *rest: Any, **options: Any) -> Complex:
        one, two = as_complex(op, self), as_complex(op, other)
        a, b, c, d = one.real(op), one.imaginary(op), two.real(op), two.imaginary(op)
        bias, rest = (rest[0], rest[1:]) if rest else (None, ())
        first, second = (None, None) if bias is None else (bias.real(op), bias.imaginary(op))

        def product(x: Tensor, y: Tensor, added: Tensor | None = None) -> Tensor:
            return function(op, x, y, added, *rest, **options)

        real = op.Sub(product(a, c, first), product(b, d))
        return Complex.joined(op, real, op.Add(product(a, d, second), product(b, c)))

    translate.__doc__ = f"{names[0]}(Tensor self, Tensor other, ...) -> Tensor"


def _product(op: Builder, a: Tensor, b: Tensor, _added: None = None) -> Tensor:
    if a.known_sizes[-1] == 0:
        return filled(op, op.result.shape, 0, op.result.dtype.to_real())
    return linalg.product(op, a, b)


_two_operands(_product, "mm", "bmm", "matmul", "mv", "dot", "linalg_matmul")
_two_operands(linalg.linear, "linear")
_two_operands(convolutions.conv, "conv1d", "conv2d", "conv3d")
_two_operands(convolutions.conv_named_padding, "conv1d.padding", "conv2d.padding", "conv3d.padding")
_two_operands(convolutions.convolution, "convolution")
_two_operands(convolutions.conv_transpose, "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")


@complex_op("aten::addmm", "aten::baddbmm", "aten::addmv")
def addmm(op: Builder, self: Operand, mat1: Complex, mat2: Complex, *, beta: Any = 1, alpha: Any = 1) -> Complex:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    a, b, c, d = mat1.real(op), mat1.imaginary(op), mat2.real(op), mat2.imaginary(op)
    real = op.Sub(_product(op, a, c), _product(op, b, d))
    product = scaled(op, Complex.joined(op, real, op.Add(_product(op, a, d), _product(op, b, c))), alpha)
    if isinstance(beta, int | float | complex) and beta == 0:  # what would be added is not looked at
        return product
    return Complex(op.Add(scaled(op, self, beta).pairs, product.pairs))


@complex_op("aten::addbmm")
def addbmm(op: Builder, self: Operand, batch1: Complex, batch2: Complex, *, beta: Any = 1, alpha: Any = 1) -> Complex:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

    The sum of the products is one product, of the matrices side by side and of those below each other.
    """
    total, rows, inner = batch1.pairs.known_sizes[:3]
    beside = op.reshape(op.transpose(batch1.pairs, [1, 0, 2, 3]), (rows, total * inner, 2))
    below = op.reshape(batch2.pairs, (total * inner, batch2.pairs.known_sizes[2], 2))
    return addmm(op, self, Complex(beside), Complex(below), beta=beta, alpha=alpha)


@complex_op("aten::addcmul")
def addcmul(op: Builder, self: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Complex:
    """addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    product = mul(op, scaled(op, tensor1, value), as_complex(op, tensor2))
    return Complex(op.Add(as_complex(op, self).pairs, product.pairs))


@complex_op("aten::addcdiv")
def addcdiv(op: Builder, self: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Complex:
    """addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    quotient = div(op, scaled(op, tensor1, value), as_complex(op, tensor2))
    return Complex(op.Add(as_complex(op, self).pairs, quotient.pairs))


@complex_op("aten::vdot")
def vdot(op: Builder, self: Complex, other: Complex) -> Complex:
    """vdot(Tensor self, Tensor other) -> Tensor: the first one conjugated"""
    product = mul(op, conj(op, self), other)
    return Complex(op.ReduceSum(product.pairs, op.ints(0), keepdims=0))
