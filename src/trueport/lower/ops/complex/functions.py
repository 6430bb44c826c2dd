"""Functions of complex numbers, by functions of their parts, in float64.

The formulas are those that keep their digits where the plain ones cancel. Where a part is infinite or a zero has a
sign, the results are those of C's functions, which eager calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.exact.precise import function, log1p
from trueport.lower.ops.binary import atan2, is_negative
from trueport.lower.ops.complex.complexes import Operand, absolute, as_complex, joined, mul, raised, reciprocal, wide
from trueport.lower.ops.complex.create import filled_with
from trueport.lower.ops.unary import expm1
from trueport.lower.tensor import Tensor

DOUBLE = ir.DataType.DOUBLE
Parts = tuple[Tensor, Tensor]
Function = Callable[[Builder, Tensor, Tensor], Parts]


def _stretched(op: Builder, length: Tensor, x: Tensor) -> Tensor:
    """length * x, in which a zero x stays zero: infinity would make it NaN."""
    return op.Where(op.Equal(x, 0), op.Where(op.Less(length, 0), op.Neg(x), x), op.Mul(length, x))


def exp(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """Of -infinity, 0 in any direction, even in none; of infinity, infinite in any."""
    length = op.Exp(a)
    nowhere = op.Or(op.IsInf(b), op.IsNaN(b))
    near, far = (op.And(nowhere, op.Equal(a, limit)) for limit in (-math.inf, math.inf))
    zero = op.const(0.0, DOUBLE)
    real, imaginary = op.Mul(length, op.Cos(b)), _stretched(op, length, op.Sin(b))
    real = op.Where(far, op.const(math.inf, DOUBLE), real)
    return op.Where(near, zero, real), op.Where(near, zero, imaginary)


def _exp2(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return exp(op, op.Mul(a, math.log(2)), op.Mul(b, math.log(2)))


def log(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return op.Mul(op.Log(op.Add(op.Mul(a, a), op.Mul(b, b))), 0.5), atan2(op, b, a)


def sqrt(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """In the right half of the plane; on the negative axis, the sign of a zero b decides."""
    length = op.Sqrt(op.Add(op.Mul(a, a), op.Mul(b, b)))
    large = op.Sqrt(op.Mul(op.Add(length, op.Abs(a)), 0.5))
    small = op.Where(op.Equal(large, 0), large, op.Div(op.Abs(b), op.Mul(large, 2)))
    small = op.Where(op.IsInf(b), large, small)
    right = op.GreaterOrEqual(a, 0)
    size = op.Where(right, small, large)
    return op.Where(right, large, small), op.Where(is_negative(op, b), op.Neg(size), size)


def _cosh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    real = op.Mul(function(op, "Cosh", a), op.Cos(b))
    return real, _stretched(op, function(op, "Sinh", a), op.Sin(b))


def _sinh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    real = op.Mul(function(op, "Sinh", a), op.Cos(b))
    return real, _stretched(op, function(op, "Cosh", a), op.Sin(b))


def _tanh(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """By the tangent of each part, which do not overflow where sinh and cosh do; far out, 1 in any direction."""
    t, u = op.Tanh(a), function(op, "Tan", b)
    square_t, square_u = op.Mul(t, t), op.Mul(u, u)
    below = op.Add(op.Mul(square_t, square_u), 1)
    far = op.Greater(op.Abs(a), 40)
    real = op.Where(far, t, op.Div(op.Mul(t, op.Add(square_u, 1)), below))
    return real, op.Where(far, op.const(0.0, DOUBLE), op.Div(op.Mul(u, op.Sub(1, square_t)), below))


def of_imaginary(one: Function) -> Function:
    """-i f(iz): the sine by the hyperbolic sine, and so on."""

    def other(op: Builder, a: Tensor, b: Tensor) -> Parts:
        real, imaginary = one(op, op.Neg(b), a)
        return imaginary, op.Neg(real)

    return other


def _cos(op: Builder, a: Tensor, b: Tensor) -> Parts:
    return _cosh(op, op.Neg(b), a)


def _expm1(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """exp(a) cos(b) - 1 as expm1(a) cos(b) - 2 sin(b/2)^2."""
    half = op.Sin(op.Mul(b, 0.5))
    real = op.Sub(op.Mul(expm1(op, a), op.Cos(b)), op.Mul(op.Mul(half, half), 2))
    return real, op.Mul(op.Exp(a), op.Sin(b))


def log1p_of(op: Builder, a: Tensor, b: Tensor) -> Parts:
    """Near 0, by how much the square of the length of 1 + z exceeds 1."""
    excess = op.Add(op.Mul(a, op.Add(a, 2)), op.Mul(b, b))
    real, angle = log(op, op.Add(a, 1), b)
    return op.Where(op.Less(op.Abs(excess), 0.5), op.Mul(log1p(op, excess), 0.5), real), angle


def _by_base(base: float) -> Function:
    def of_base(op: Builder, a: Tensor, b: Tensor) -> Parts:
        real, imaginary = log(op, a, b)
        return op.Div(real, math.log(base)), op.Div(imaginary, math.log(base))

    return of_base


def register(name: str, function: Function) -> None:
    @complex_op(f"aten::{name}")
    def translate(op: Builder, self: Complex) -> Complex:
        return applied(op, function, self)

    translate.__doc__ = f"{name}(Tensor self) -> Tensor"


def applied(op: Builder, function: Function, z: Complex) -> Complex:
    pairs = joined(op, *function(op, *wide(op, z).parts(op))).pairs
    return Complex(op.cast(pairs, z.pairs.element))


for _name, _function in {
    "exp": exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": log,
    "log1p": log1p_of,
    "log2": _by_base(2),
    "log10": _by_base(10),
    "sqrt": sqrt,
    "sin": of_imaginary(_sinh),
    "cos": _cos,
    "tan": of_imaginary(_tanh),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
}.items():
    register(_name, _function)


@complex_op("aten::rsqrt")
def rsqrt(op: Builder, self: Complex) -> Complex:
    """rsqrt(Tensor self) -> Tensor"""
    return reciprocal(op, applied(op, sqrt, self))


@complex_op("aten::sigmoid")
def sigmoid(op: Builder, self: Complex) -> Complex:
    """sigmoid(Tensor self) -> Tensor"""
    grown = applied(op, exp, Complex(op.Neg(self.pairs)))
    return reciprocal(op, Complex(op.Add(grown.pairs, op.const([1, 0], grown.pairs.element))))


@complex_op("aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::pow.Scalar")
def power(op: Builder, self: Operand, exponent: Operand) -> Complex:
    """pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor: eager multiplies where the exponent is a small number,
    and elsewhere asks for exp(exponent * log(self)), of zero too
    """
    base = as_complex(op, self)
    if isinstance(exponent, complex) and not exponent.imag:
        exponent = exponent.real
    if isinstance(exponent, int | float) and exponent in _POWERS:
        return _POWERS[exponent](op, base)
    logarithm = joined(op, *log(op, *wide(op, base).parts(op)))
    product = mul(op, logarithm, wide(op, as_complex(op, exponent)))
    return Complex(op.cast(joined(op, *exp(op, *product.parts(op))).pairs, base.pairs.element))


@complex_op("aten::square")
def square(op: Builder, self: Complex) -> Complex:
    """square(Tensor self) -> Tensor"""
    return mul(op, self, self)


_POWERS: dict[float, Callable[[Builder, Complex], Complex]] = {
    0: lambda op, z: filled_with(op, 1),
    0.5: lambda op, z: applied(op, sqrt, z),
    1: lambda op, z: z,
    2: square,
    3: lambda op, z: mul(op, square(op, z), z),
    -0.5: rsqrt,
    -1: reciprocal,
    -2: lambda op, z: reciprocal(op, square(op, z)),
}


@complex_op("aten::sgn")
def sgn(op: Builder, self: Complex) -> Complex:
    """sgn(Tensor self) -> Tensor: on the unit circle, or 0"""
    length = raised(op, absolute(op, self))
    return Complex(op.Div(self.pairs, op.Where(op.Equal(length, 0), op.const(1, length.element), length)))
