"""What is taken together of many complex numbers: norms, variances, products, and running products and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.ops.axes import axis_of
from trueport.lower.ops.binary import atan2
from trueport.lower.ops.complex.complexes import Operand, absolute, as_complex, mul, wide
from trueport.lower.ops.complex.functions import applied, exp, log1p_of
from trueport.lower.ops.reduce import Axes, reduced, variance
from trueport.lower.ops.reduce import vector_norm as norm_of_reals
from trueport.lower.ops.scan import running
from trueport.lower.tensor import Tensor


@complex_op("aten::linalg_vector_norm")
def vector_norm(op: Builder, self: Complex, *args: Any, **options: Any) -> Tensor:
    """linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"""
    lengths = absolute(op, self)
    lengths.settle(self.pairs.known_sizes[:-1])
    return norm_of_reals(op, lengths, *args, **options)


def _moments(op: Builder, z: Complex, dim: Axes, correction: Any, keepdim: bool) -> tuple[Tensor, Complex]:
    """(variance, mean): squares of distances in the plane are the sums of those along either axis."""
    (one, real), (other, imaginary) = (
        variance(op, part, dim, correction, keepdim) for part in (z.real(op), z.imaginary(op))
    )
    return op.Add(one, other), Complex.joined(op, real, imaginary)


def _register(name: str, results: Callable[[Builder, Tensor, Complex], Any]) -> None:
    """In the three forms that torch has: by a correction, of some axes, of everything."""

    @complex_op(f"aten::{name}.correction")
    def corrected(
        op: Builder, self: Complex, dim: Axes = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        return results(op, *_moments(op, self, dim, correction, keepdim))

    @complex_op(f"aten::{name}.dim")
    def of_axes(op: Builder, self: Complex, dim: Axes, unbiased: bool = True, keepdim: bool = False) -> Any:
        return corrected(op, self, dim, correction=int(unbiased), keepdim=keepdim)

    @complex_op(f"aten::{name}")
    def of_all(op: Builder, self: Complex, unbiased: bool = True) -> Any:
        return corrected(op, self, correction=int(unbiased))

    corrected.__doc__ = f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...)"
    of_axes.__doc__ = f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
    of_all.__doc__ = f"{name}(Tensor self, bool unbiased=True)"


_register("var", lambda op, spread, middle: spread)
_register("std", lambda op, spread, middle: op.Sqrt(spread))
_register("var_mean", lambda op, spread, middle: (spread, middle))
_register("std_mean", lambda op, spread, middle: (op.Sqrt(spread), middle))


@complex_op("aten::prod", "aten::prod.dim_int")
def prod(
    op: Builder, self: Operand, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Complex | Tensor:
    """prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    Lengths are multiplied and angles added, in float64: ONNX multiplies along an axis only what is real. A product that
    overflows is NaN, as it is in eager once an infinite part meets another number.
    """
    if isinstance(self, Complex) and dtype is not None and not dtype.is_complex:
        return reduced(op, "ReduceProd", op.cast(self.real(op), dtype), dim, keepdim)
    z = _in_dtype(op, self)
    if z.rank == 0:
        return z
    a, b = wide(op, z).real(op), wide(op, z).imaginary(op)
    length, angle = op.Sqrt(op.Add(op.Mul(a, a), op.Mul(b, b))), atan2(op, b, a)
    for part in (length, angle):
        part.settle(z.pairs.known_sizes[:-1])
    length = reduced(op, "ReduceProd", length, dim, keepdim)
    length = op.Where(op.IsInf(op.cast(length, z.pairs.element)), op.const(math.nan, ir.DataType.DOUBLE), length)
    angle = reduced(op, "ReduceSum", angle, dim, keepdim)
    parts = (op.Mul(length, turn) for turn in (op.Cos(angle), op.Sin(angle)))
    return Complex(op.cast(Complex.joined(op, *parts).pairs, z.pairs.element))


def _in_dtype(op: Builder, z: Operand) -> Complex:
    """In the dtype of the result."""
    found = as_complex(op, z)
    pairs = op.cast(found.pairs, op.result.dtype.to_real())
    return Complex(pairs)


@complex_op("aten::cumprod")
def cumprod(op: Builder, self: Operand, dim: int, *, dtype: torch.dtype | None = None) -> Complex:
    """cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"""
    carried = wide(op, _in_dtype(op, self))  # as eager does: a product may come back from beyond the largest
    return _running(op, carried, dim, (1.0, 0.0), mul)


@complex_op("aten::logcumsumexp")
def logcumsumexp(op: Builder, self: Complex, dim: int) -> Complex:
    """logcumsumexp(Tensor self, int dim) -> Tensor"""
    return _running(op, self, dim, (-math.inf, 0.0), lambda op, total, z: logaddexp(op, z, total))


def _running(op: Builder, z: Complex, dim: int, start: tuple[float, float], step: Any) -> Complex:
    if z.rank == 0:
        return z
    axis = axis_of(dim, z.rank)
    sizes = z.pairs.known_sizes
    first = op.expand(op.const(list(start), z.pairs.element), (*sizes[:axis], *sizes[axis + 1 :]))

    def on_pairs(op: Builder, total: Tensor, item: Tensor) -> Tensor:
        found: Complex = step(op, Complex(total), Complex(item))
        return found.pairs

    return Complex(running(op, z.pairs, axis, first, on_pairs))


@complex_op("aten::logaddexp")
def logaddexp(op: Builder, self: Operand, other: Operand) -> Complex:
    """logaddexp(Tensor self, Tensor other) -> Tensor: from the one with the larger real part, so that nothing overflows

    Its angle is kept as it is, and not brought between -pi and pi.
    """
    one, two = as_complex(op, self), as_complex(op, other)
    is_first = op.GreaterOrEqual(one.parts(op)[0], two.parts(op)[0])
    larger = op.Where(is_first, one.pairs, two.pairs)
    smaller = op.Where(is_first, two.pairs, one.pairs)
    apart = applied(op, lambda op, a, b: log1p_of(op, *exp(op, a, b)), Complex(op.Sub(smaller, larger)))
    nothing = op.Equal(Complex(larger).parts(op)[0], -math.inf)
    return Complex(op.Where(nothing, smaller, op.Add(larger, apart.pairs)))
