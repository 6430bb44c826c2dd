"""Arithmetic of batches of complex matrices, by their two parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex
from trueport.lower.ops.axes import count
from trueport.lower.ops.linalg.matrices import DOUBLE, sized
from trueport.lower.tensor import Tensor


@dataclass(frozen=True)
class ComplexParts:
    """Complex numbers by their real and imaginary parts, in float64."""

    real: Tensor
    imaginary: Tensor

    def each(self, function: Callable[[Tensor], Tensor]) -> ComplexParts:
        return ComplexParts(function(self.real), function(self.imaginary))


def parts(op: Builder, z: Complex) -> ComplexParts:
    """[batch, rows, columns] each."""
    sizes = z.pairs.known_sizes
    flat = (count(sizes[:-3]), *sizes[-3:-1])
    return ComplexParts(
        *(op.cast(op.reshape(sized(x, *sizes[:-1]), flat), DOUBLE) for x in (z.real(op), z.imaginary(op)))
    )


def joined(op: Builder, x: ComplexParts, batch: tuple[Size, ...]) -> Complex:
    """With the axes of the batch as the model has them."""
    sizes = (*batch, *x.real.known_sizes[1:])
    pairs = Complex.joined(op, *(op.reshape(part, sizes) for part in (x.real, x.imaginary))).pairs
    return Complex(sized(pairs, *sizes, 2))


def mul(op: Builder, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    real = op.Sub(op.Mul(a.real, b.real), op.Mul(a.imaginary, b.imaginary))
    return ComplexParts(real, op.Add(op.Mul(a.real, b.imaginary), op.Mul(a.imaginary, b.real)))


def matmul(op: Builder, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    real = op.Sub(op.MatMul(a.real, b.real), op.MatMul(a.imaginary, b.imaginary))
    return ComplexParts(real, op.Add(op.MatMul(a.real, b.imaginary), op.MatMul(a.imaginary, b.real)))


def div(op: Builder, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    size = op.Add(op.Mul(b.real, b.real), op.Mul(b.imaginary, b.imaginary))
    size = op.Where(op.Equal(size, 0), op.const(1.0, DOUBLE), size)
    return mul(op, a, ComplexParts(b.real, op.Neg(b.imaginary))).each(lambda x: op.Div(x, size))


def sub(op: Builder, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    return ComplexParts(op.Sub(a.real, b.real), op.Sub(a.imaginary, b.imaginary))


def where(op: Builder, mask: Tensor, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    return ComplexParts(op.Where(mask, a.real, b.real), op.Where(mask, a.imaginary, b.imaginary))


def adjoint(op: Builder, a: ComplexParts) -> ComplexParts:
    """The conjugates of the transposed matrices."""
    return ComplexParts(_flipped(op, a.real), op.Neg(_flipped(op, a.imaginary)))


def _flipped(op: Builder, x: Tensor) -> Tensor:
    return op.Transpose(x, perm=[0, 2, 1])
