"""Functions of complex numbers, by functions of their parts, in float64; and what is linear in two complex operands.

The formulas are those that keep their digits where the plain ones cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.complex_numbers import Complex, complex_op
from trueport.lower.ops import convolution as convolutions
from trueport.lower.ops import linalg
from trueport.lower.ops.binary import atan2
from trueport.lower.ops.complexes import Operand, absolute, as_complex, div, joined, mul, raised, reciprocal, wide
from trueport.lower.ops.create import filled
from trueport.lower.tensor import Tensor

DOUBLE = ir.DataType.DOUBLE
Parts = tuple[Tensor, Tensor]
Function = Callable[[Builder, Tensor, Tensor], Parts]


def _exp(op: Builder, a: Tensor, b: Tensor) -> Parts:
    length = op.Exp(a)
    return op.Mul(length, op.Cos(b)), op.Mul(length, op.Sin(b))


def _log(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Log(op.Add(op.Mul(a, a), op.Mul(b, b))), 0.5), atan2(op, b, a)


def _sqrt(op: Builder, a: Tensor, b: Tensor) -> Parts:
    length = op.Sqrt(op.Add(op.Mul(a, a), op.Mul(b, b)))
    large = op.Sqrt(op.Mul(op.Add(length, op.Abs(a)), 0.5))
    small = op.Where(op.Equal(large, 0), large, op.Div(op.Abs(b), op.Mul(large, 2)))
    right = op.GreaterOrEqual(a, 0)
    size = op.Where(right, small, large)
    return op.Where(right, large, small), op.Where(op.Less(b, 0), op.Neg(size), size)


def _sin(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Sin(a), op.Cosh(b)), op.Mul(op.Cos(a), op.Sinh(b))


def _cos(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Cos(a), op.Cosh(b)), op.Neg(op.Mul(op.Sin(a), op.Sinh(b)))


def _sinh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Sinh(a), op.Cos(b)), op.Mul(op.Cosh(a), op.Sin(b))


def _cosh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Cosh(a), op.Cos(b)), op.Mul(op.Sinh(a), op.Sin(b))


def _tanh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """By the tangent of each part, which do not overflow where sinh and cosh do."""
    t, u = op.Tanh(a), op.Tan(b)
    square_t, square_u = op.Mul(t, t), op.Mul(u, u)
    below = op.Add(op.Mul(square_t, square_u), 1)
    return op.Div(op.Mul(t, op.Add(square_u, 1)), below), op.Div(op.Mul(u, op.Sub(1, square_t)), below)


def _tan(op: Builder, a: Tensor, b: Tensor) -> Parts:
    real, imaginary = _tanh(op, op.Neg(b), a)
    return imaginary, op.Neg(real)


def _expm1(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """exp(a) cos(b) - 1 as expm1(a) cos(b) - 2 sin(b/2)^2."""
    imaginary = _exp(op, a, b)[1]
    half = op.Sin(op.Mul(b, 0.5))
    small = op.Mul(op.Mul(op.Sinh(op.Mul(a, 0.5)), op.Exp(op.Mul(a, 0.5))), 2)
    return op.Sub(op.Mul(small, op.Cos(b)), op.Mul(op.Mul(half, half), 2)), imaginary


def _log1p(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return _log(op, op.Add(a, 1), b)


def _by_base(base: float) -> Function:
    def log(op: Builder, a: Tensor, b: Tensor) -> Parts:
        real, imaginary = _log(op, a, b)
        return op.Div(real, math.log(base)), op.Div(imaginary, math.log(base))

    return log


def _register(name: str, function: Function) -> None:
    @complex_op(f"aten::{name}")
    def translate(op: Builder, self: Complex) -> Complex:
        return _applied(op, function, self)

    translate.__doc__ = f"{name}(Tensor self) -> Tensor"


def _applied(op: Builder, function: Function, z: Complex) -> Complex:
    pairs = joined(op, *function(op, *wide(op, z).parts(op))).pairs
    return Complex(op.cast(pairs, z.pairs.element))


for _name, _function in {
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": _by_base(2),
    "log10": _by_base(10),
    "sqrt": _sqrt,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
}.items():
    _register(_name, _function)


@complex_op("aten::rsqrt")
def rsqrt(op: Builder, self: Complex) -> Complex:
    """rsqrt(Tensor self) -> Tensor"""
    return reciprocal(op, _applied(op, _sqrt, self))


@complex_op("aten::sigmoid")
def sigmoid(op: Builder, self: Complex) -> Complex:
    """sigmoid(Tensor self) -> Tensor"""
    grown = _applied(op, _exp, Complex(op.Neg(self.pairs)))
    return reciprocal(op, Complex(op.Add(grown.pairs, op.const([1, 0], grown.pairs.element))))


@complex_op("aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::pow.Scalar")
def power(op: Builder, self: Operand, exponent: Operand) -> Complex:
    """pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor: by products where the exponent is a small number"""
    base = as_complex(op, self)
    if isinstance(exponent, int | float) and float(exponent).is_integer() and 1 <= abs(exponent) <= 4:
        product = base
        for _ in range(int(abs(exponent)) - 1):
            product = mul(op, product, base)
        return reciprocal(op, product) if exponent < 0 else product
    if exponent == 0.5:
        return _applied(op, _sqrt, base)
    raised_to = as_complex(op, exponent)
    logarithm = joined(op, *_log(op, *wide(op, base).parts(op)))
    pairs = joined(op, *_exp(op, *mul(op, logarithm, wide(op, raised_to)).parts(op))).pairs
    if exponent == 0:
        return _filled(op, 1)
    below = op.Less(raised_to.parts(op)[0], 0)
    at_zero = op.Where(below, op.const([math.inf, math.nan], DOUBLE), op.const([0, 0], DOUBLE))
    whole = op.Where(raised(op, op.Equal(absolute(op, base), 0)), at_zero, pairs)
    return Complex(op.cast(whole, base.pairs.element))


@complex_op("aten::square")
def square(op: Builder, self: Complex) -> Complex:
    """square(Tensor self) -> Tensor"""
    return mul(op, self, self)


@complex_op("aten::sgn")
def sgn(op: Builder, self: Complex) -> Complex:
    """sgn(Tensor self) -> Tensor: on the unit circle, or 0"""
    length = raised(op, absolute(op, self))
    return Complex(op.Div(self.pairs, op.Where(op.Equal(length, 0), op.const(1, length.element), length)))


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


@complex_op("aten::linalg_vector_norm")
def vector_norm(op: Builder, self: Complex, *args: Any, **options: Any) -> Tensor:
    """linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"""
    from trueport.lower.ops.reduce import vector_norm as of_real

    lengths = absolute(op, self)
    lengths.settle(self.pairs.known_sizes[:-1])
    return of_real(op, lengths, *args, **options)


@complex_op(
    *(f"aten::{name}" for name in ("zeros", "zeros_like", "new_zeros", "zero", "empty", "empty_like", "new_empty")),
    "aten::empty_strided",
    "aten::new_empty_strided",
    "aten::empty.memory_format",
)
def zeros(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _filled(op, 0)


@complex_op("aten::ones", "aten::ones_like", "aten::new_ones")
def ones(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _filled(op, 1)


@complex_op("aten::full", "aten::full_like", "aten::new_full")
def full(op: Builder, *args: Any, fill_value: Operand | None = None, **_options: Any) -> Complex:
    """full(SymInt[] size, Scalar fill_value, *, ...) -> Tensor"""
    return _filled(op, args[-1] if fill_value is None else fill_value)


@complex_op("aten::scalar_tensor")
def scalar_tensor(op: Builder, s: Operand, **_options: Any) -> Complex:
    """scalar_tensor(Scalar s, *, ...) -> Tensor"""
    return _filled(op, s)


def _filled(op: Builder, value: Any) -> Complex:
    dtype = op.result.dtype.to_real()
    parts = (value.real, value.imag) if isinstance(value, complex) else (value, 0)
    return Complex.joined(op, *(filled(op, op.result.shape, part, dtype) for part in parts))


@complex_op("aten::randn", "aten::randn_like")
def randn(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """randn(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor: of variance 1, half of it in each part"""
    return _drawn(op, op.RandomNormalLike, scale=math.sqrt(0.5))


@complex_op("aten::rand", "aten::rand_like")
def rand(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """rand(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _drawn(op, op.RandomUniformLike)


def _drawn(op: Builder, draw: Callable[..., Tensor], **options: float) -> Complex:
    like = op.Expand(op.const(0.0), op.shape([*op.result.shape, 2]))
    return Complex(op.cast(draw(like, dtype=int(ir.DataType.FLOAT), **options), op.result.dtype.to_real()))


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


def _product(op: Builder, a: Tensor, b: Tensor, added: Tensor | None = None) -> Tensor:
    return op.MatMul(a, b) if added is None else op.Add(op.MatMul(a, b), added)


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
    real = op.Sub(op.MatMul(a, c), op.MatMul(b, d))
    product = Complex.joined(op, real, op.Add(op.MatMul(a, d), op.MatMul(b, c)))
    scaled = product if alpha == 1 else mul(op, product, alpha)
    added = as_complex(op, self) if beta == 1 else mul(op, as_complex(op, self), beta)
    return Complex(op.Add(added.pairs, scaled.pairs))


@complex_op("aten::addcmul")
def addcmul(op: Builder, self: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Complex:
    """addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    product = mul(op, as_complex(op, tensor1), as_complex(op, tensor2))
    return Complex(op.Add(as_complex(op, self).pairs, mul(op, product, value).pairs))


@complex_op("aten::addcdiv")
def addcdiv(op: Builder, self: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Complex:
    """addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""
    quotient = div(op, as_complex(op, tensor1), as_complex(op, tensor2))
    return Complex(op.Add(as_complex(op, self).pairs, mul(op, quotient, value).pairs))
