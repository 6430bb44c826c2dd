"""Singular values and vectors of complex matrices, eigenvalues and vectors of Hermitian ones: `jacobi.py` on two parts.

Two columns are turned against each other after one of them has been brought into phase with the other, so that their
product is real. The vectors are eager's up to their phase, which LAPACK chooses in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.loops import loop_while
from trueport.lower.ops.axes import slice_axis
from trueport.lower.ops.complex.linalg import batch_of, triangle
from trueport.lower.ops.complex.matrices import ComplexParts, adjoint, joined, parts
from trueport.lower.ops.complex.qr import qr_of
from trueport.lower.ops.linalg.jacobi import (
    NOISE,
    ORTHOGONAL,
    largest_of,
    most_rounds,
    partner_in,
    rotation,
    tournament,
)
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    columns_in_order,
    diagonal_of,
    identities,
    identity,
    sized,
    smaller,
)
from trueport.lower.ops.linalg.spectra import note_arbitrary
from trueport.lower.tensor import Tensor


@dataclass(frozen=True)
class _Rotated:
    """`a @ v = w`, the columns in the order of their lengths, which are `lengths` [batch, n]."""

    w: ComplexParts
    v: ComplexParts
    lengths: Tensor


def _rotated(op: Builder, a: ComplexParts, *, largest_first: bool = True) -> _Rotated:
    batch, rows, n = a.real.known_sizes
    scale = op.Max(*(largest_of(op, part) for part in (a.real, a.imaginary)))
    start = a.each(lambda x: sized(op.Div(x, scale), batch, rows, n))
    noise = op.Mul(op.ReduceSum(_squares(op, start), op.ints(1, 2), keepdims=1), NOISE)
    players, is_even, count = tournament(op, n)
    one = identities(op, batch, n)
    none = sized(op.Mul(one, 0), *one.known_sizes)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        w, v, turned = ComplexParts(*states[:2]), ComplexParts(*states[2:4]), states[4]
        at = op.Mod(i, count)
        partner = partner_in(op, players, at, is_even, count)
        other = w.each(lambda x: op.Gather(x, partner, axis=2))
        square = op.ReduceSum(_squares(op, w), op.ints(1), keepdims=1)
        other_square = op.Gather(square, partner, axis=2)
        product = _products(op, w, other)
        size = op.Sqrt(_squares(op, product))
        bound = op.Mul(op.Sqrt(op.Mul(square, other_square)), ORTHOGONAL)
        needed = op.And(op.Greater(size, bound), op.Not(op.Equal(partner, players)))
        needed = op.And(needed, op.Greater(op.Min(square, other_square), noise))
        phase = product.each(lambda x: op.Div(x, op.Where(needed, size, op.const(1.0, DOUBLE))))
        cosine, sine = rotation(op, square, other_square, size, needed, op.Less(players, partner))
        w = _turned(op, w, other, cosine, sine, phase)
        v = _turned(op, v, v.each(lambda x: op.Gather(x, partner, axis=2)), cosine, sine, phase)
        any_now = op.Greater(op.ReduceMax(op.cast(needed, INT32), keepdims=0), 0)
        turned = op.Or(op.And(turned, op.Greater(at, 0)), any_now)
        sweep_ends = op.Equal(at, op.Sub(count, 1))
        return op.Or(turned, op.Not(sweep_ends)), [w.real, w.imaginary, v.real, v.imaginary, turned]

    rounds = most_rounds(op, count, batch, rows, n)
    states = [start.real, start.imaginary, one, none, op.const(False)]
    found = loop_while(op, rounds, states, body)
    w, v = ComplexParts(*found[:2]), ComplexParts(*found[2:4])
    lengths = sized(op.Sqrt(op.ReduceSum(_squares(op, w), op.ints(1), keepdims=0)), batch, n)
    lengths, order = op.many("TopK", 2, lengths, op.shape([n]), axis=1, largest=int(largest_first))
    lengths, order = sized(lengths, batch, n), sized(order, batch, n)
    w, v = (x.each(lambda part: columns_in_order(op, part, order)) for x in (w, v))
    w = w.each(lambda x: sized(op.Mul(x, scale), batch, rows, n))
    return _Rotated(w, v, sized(op.Mul(lengths, op.Squeeze(scale, op.ints(2))), batch, n))


def _squares(op: Builder, z: ComplexParts) -> Tensor:
    return op.Add(op.Mul(z.real, z.real), op.Mul(z.imaginary, z.imaginary))


def _products(op: Builder, one: ComplexParts, other: ComplexParts) -> ComplexParts:
    """conj(one) * other, added up along the rows."""
    real = op.Add(op.Mul(one.real, other.real), op.Mul(one.imaginary, other.imaginary))
    imaginary = op.Sub(op.Mul(one.real, other.imaginary), op.Mul(one.imaginary, other.real))
    return ComplexParts(real, imaginary).each(lambda x: op.ReduceSum(x, op.ints(1), keepdims=1))


def _turned(
    op: Builder, one: ComplexParts, other: ComplexParts, cosine: Tensor, sine: Tensor, phase: ComplexParts
) -> ComplexParts:
    """cosine * one - sine * conj(phase) * other"""
    real = op.Add(op.Mul(phase.real, other.real), op.Mul(phase.imaginary, other.imaginary))
    imaginary = op.Sub(op.Mul(phase.real, other.imaginary), op.Mul(phase.imaginary, other.real))
    return ComplexParts(
        op.Sub(op.Mul(cosine, one.real), op.Mul(sine, real)),
        op.Sub(op.Mul(cosine, one.imaginary), op.Mul(sine, imaginary)),
    )


@complex_op("aten::_linalg_eigh")
def eigh(op: Builder, A: Complex, UPLO: str = "L", compute_v: bool = True) -> Any:
    """_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)

    Moved by more than the norm of the matrix, all eigenvalues are positive, and they are the singular values.
    """
    batch, n = batch_of(A), A.pairs.known_sizes[-2]
    a = _hermitian(op, A, UPLO)
    squares = op.ReduceSum(_squares(op, a), op.ints(1, 2), keepdims=1)
    moved_by = op.Mul(op.Sqrt(squares), 1.5)
    moved = op.Add(a.real, op.Mul(identity(op, n), moved_by))
    found = _rotated(op, ComplexParts(sized(moved, *a.real.known_sizes), a.imaginary), largest_first=False)
    values = sized(op.Sub(found.lengths, op.Squeeze(moved_by, op.ints(2))), *found.lengths.known_sizes)
    values = op.reshape(values, (*batch, n))
    if not compute_v:
        return values, _nothing(op, A)
    if not op.wants(1):
        return values, None
    note_arbitrary(op, "eigh", "phase")
    return values, joined(op, found.v, batch)


def _hermitian(op: Builder, z: Complex, uplo: str) -> ComplexParts:
    """The matrix of which one triangle is given; of its diagonal, the real part."""
    half = parts(op, triangle(op, z, upper=uplo.upper() == "U"))
    sizes, n = half.real.known_sizes, z.pairs.known_sizes[-2]
    other = adjoint(op, half)
    share = op.Sub(1, op.Mul(identity(op, n), 0.5))
    both = ComplexParts(op.Add(half.real, other.real), op.Add(half.imaginary, other.imaginary))
    return both.each(lambda x: sized(op.Mul(x, share), *sizes))


def _nothing(op: Builder, like: Complex) -> Complex:
    return Complex(sized(op.expand(op.const([[0.0]], like.pairs.element), (0, 2)), 0, 2))


@complex_op("aten::_linalg_svd")
def svd(op: Builder, A: Complex, full_matrices: bool = False, compute_uv: bool = True, **_: Any) -> Any:
    """_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)
    -> (Tensor U, Tensor S, Tensor Vh)
    """
    batch, a = batch_of(A), parts(op, A)
    total, rows, columns = a.real.known_sizes
    least = smaller(rows, columns)
    # Of free sizes nobody knows which is larger: both ways are right, one is faster.
    tall = not (isinstance(rows, int) and isinstance(columns, int)) or rows >= columns
    found = _rotated(op, a if tall else _adjoint(op, a))
    values = sized(slice_axis(op, found.lengths, 1, 0, least), total, least)
    values = op.reshape(values, (*batch, least))
    if not compute_uv:
        return _nothing(op, A), values, _nothing(op, A)
    if not op.wants(0, 2):
        return None, values, None
    note_arbitrary(op, "svd", "phase")
    left, right = _both_sides(op, found, full_matrices)
    u, v = (left, right) if tall else (right, left)
    return joined(op, u, batch), values, joined(op, _adjoint(op, v), batch)


def _adjoint(op: Builder, a: ComplexParts) -> ComplexParts:
    batch, rows, columns = a.real.known_sizes
    return adjoint(op, a).each(lambda x: sized(x, batch, columns, rows))


def _both_sides(op: Builder, found: _Rotated, full: bool) -> tuple[ComplexParts, ComplexParts]:
    """The left and the right singular vectors, as columns: QR of the orthogonal columns, whose R is real, gives a basis
    also where some are zero, and for the rest of the space."""
    total, rows, columns = found.w.real.known_sizes
    least = smaller(rows, columns)
    w = found.w.each(lambda x: sized(slice_axis(op, x, 2, 0, least), total, rows, least))
    q, r = qr_of(op, w, complete=full)
    square = sized(slice_axis(op, r.real, 1, 0, least), total, least, least)
    signs = op.Where(op.Less(diagonal_of(op, square), 0), op.const(-1.0, DOUBLE), op.const(1.0, DOUBLE))
    if full:
        signs = _with_ones(op, signs, rows, least)
    left = q.each(lambda x: sized(op.Mul(x, op.Unsqueeze(signs, op.ints(1))), *x.known_sizes))
    right = found.v
    if not full:
        right = right.each(lambda x: sized(slice_axis(op, x, 2, 0, least), total, columns, least))
    return left, right


def _with_ones(op: Builder, signs: Tensor, rows: Size, least: Size) -> Tensor:
    others = op.Sub(op.size(rows), op.size(least))
    ends = op.Concat(op.ints(0, 0, 0), op.Reshape(others, op.ints(1)), axis=0)
    return op.Pad(signs, ends, op.const(1.0, DOUBLE))
