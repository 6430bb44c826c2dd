"""One-sided Jacobi rotations (Hestenes), for singular values and for eigenvalues of symmetric matrices.

Columns are turned against each other, two by two, until all are orthogonal: `a @ v = w`, where the lengths of the
columns of w are the singular values. Each round turns n/2 disjoint pairs at once, paired as in a tournament where all
meet all, so that a round costs as much as a few elementwise operations; a handful of sweeps gives float64's digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.loops import loop_while
from trueport.lower.ops.linalg.matrices import DOUBLE, INT32, INT64, columns_in_order, identities, identity, sized
from trueport.lower.tensor import Tensor

_SWEEPS = 40
"""More than any matrix needs: convergence is quadratic, and about ten sweeps do for a thousand columns."""
ORTHOGONAL = 1e-14
"""Columns whose cosine is below this are not turned any more."""
NOISE = 1e-30
"""The square of what is nothing but rounding, as a share of the square of the whole matrix."""


@dataclass(frozen=True)
class Rotated:
    """`a @ v = w`, the columns in the order of their lengths, which are `lengths` [batch, n]."""

    w: Tensor
    v: Tensor
    lengths: Tensor


def rotated(op: Builder, a: Tensor, *, largest_first: bool = True) -> Rotated:
    """Rotate the columns of [batch, rows, n] until they are orthogonal; best with no fewer rows than columns."""
    batch, rows, n = a.known_sizes
    scale = largest_of(op, a)
    scaled = sized(op.Div(a, scale), batch, rows, n)
    noise = op.Mul(op.ReduceSum(op.Mul(scaled, scaled), op.ints(1, 2), keepdims=1), NOISE)
    players, is_even, count = tournament(op, n)

    def body(i: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        w, v, turned = states
        turn = op.Mod(i, count)
        partner = partner_in(op, players, turn, is_even, count)
        other = op.Gather(w, partner, axis=2)
        square = op.ReduceSum(op.Mul(w, w), op.ints(1), keepdims=1)
        other_square = op.Gather(square, partner, axis=2)
        product = op.ReduceSum(op.Mul(w, other), op.ints(1), keepdims=1)
        bound = op.Mul(op.Sqrt(op.Mul(square, other_square)), ORTHOGONAL)
        needed = op.And(op.Greater(op.Abs(product), bound), op.Not(op.Equal(partner, players)))
        needed = op.And(needed, op.Greater(op.Min(square, other_square), noise))
        cosine, sine = rotation(op, square, other_square, product, needed, op.Less(players, partner))
        w = op.Sub(op.Mul(cosine, w), op.Mul(sine, other))
        v = op.Sub(op.Mul(cosine, v), op.Mul(sine, op.Gather(v, partner, axis=2)))
        any_now = op.Greater(op.ReduceMax(op.cast(needed, INT32), keepdims=0), 0)
        turned = op.Or(op.And(turned, op.Greater(turn, 0)), any_now)
        sweep_ends = op.Equal(turn, op.Sub(count, 1))
        return op.Or(turned, op.Not(sweep_ends)), [w, v, turned]

    start = op.const(False)
    rounds = most_rounds(op, count, batch, rows, n)
    w, v, _ = loop_while(op, rounds, [scaled, identities(op, batch, n), start], body)
    lengths = sized(op.Sqrt(op.ReduceSum(op.Mul(w, w), op.ints(1), keepdims=0)), batch, n)
    lengths, order = op.many("TopK", 2, lengths, op.shape([n]), axis=1, largest=int(largest_first))
    lengths, order = sized(lengths, batch, n), sized(order, batch, n)
    w = sized(op.Mul(columns_in_order(op, w, order), scale), batch, rows, n)
    lengths = sized(op.Mul(lengths, op.Squeeze(scale, op.ints(2))), batch, n)
    return Rotated(w, columns_in_order(op, v, order), lengths)


def largest_of(op: Builder, a: Tensor) -> Tensor:
    """[batch, 1, 1]: the largest magnitude, or 1 for a matrix of zeros: no square then over- or underflows."""
    batch, rows, n = a.known_sizes
    flat = op.reshape(a, (batch, rows * n))
    padded = op.Pad(flat, op.ints(0, 0, 0, 1))
    found = op.Unsqueeze(op.ReduceMax(op.Abs(padded), op.ints(1), keepdims=1), op.ints(2))
    return sized(op.Where(op.Equal(found, 0), op.const(1, DOUBLE), found), batch, 1, 1)


def tournament(op: Builder, n: Size) -> tuple[Tensor, Tensor, Tensor]:
    """The players, whether their number is even, and the number of rounds until everyone has met everyone."""
    size = op.size(n)
    is_even = op.Equal(op.Mod(size, 2), 0)
    return op.range(n), is_even, op.Max(op.Sub(size, op.cast(is_even, INT64)), 1)


def partner_in(op: Builder, players: Tensor, turn: Tensor, is_even: Tensor, count: Tensor) -> Tensor:
    """i meets (turn - i) modulo the rounds. Who would meet himself meets the last player, or rests if n is odd."""
    opposite = op.Mod(op.Sub(turn, players), count)
    resting = op.Where(is_even, count, players)
    partner = op.Where(op.Equal(opposite, players), resting, opposite)
    half = op.Div(op.Add(count, 1), 2)
    of_last = op.Mod(op.Mul(turn, half), count)
    return op.Where(op.And(is_even, op.Equal(players, count)), of_last, partner)


def rotation(
    op: Builder, square: Tensor, other_square: Tensor, product: Tensor, needed: Tensor, is_first: Tensor
) -> tuple[Tensor, Tensor]:
    """The cosine, and the sine with its sign for either column of a pair, of the rotation that makes it orthogonal."""
    zero, one = op.const(0, DOUBLE), op.const(1, DOUBLE)
    ratio = op.Div(op.Sub(other_square, square), op.Where(needed, op.Mul(product, 2), one))
    sign = op.Where(op.Equal(ratio, zero), op.Where(is_first, one, op.const(-1, DOUBLE)), op.Sign(ratio))
    tangent = op.Div(sign, op.Add(op.Abs(ratio), op.Sqrt(op.Add(op.Mul(ratio, ratio), 1))))
    tangent = op.Where(needed, tangent, zero)
    cosine = op.Reciprocal(op.Sqrt(op.Add(op.Mul(tangent, tangent), 1)))
    return cosine, op.Mul(tangent, cosine)


def most_rounds(op: Builder, count: Tensor, *sizes: Size) -> Tensor:
    """How many rounds at the most; none for what is empty."""
    most = op.Mul(count, _SWEEPS)
    for size in sizes:
        if not op.sizes.is_positive(size):
            most = op.Mul(most, op.Min(op.size(size), 1))
    return most


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues [batch, n], ascending, and eigenvectors as columns."""

    values: Tensor
    vectors: Tensor


def spectrum(op: Builder, a: Tensor) -> Spectrum:
    """Of symmetric matrices [batch, n, n].

    Moved by more than their norm, all eigenvalues are positive, and they are the singular values.
    """
    batch, n = a.known_sizes[:2]
    squares = op.ReduceSum(op.Mul(a, a), op.ints(1, 2), keepdims=1)
    moved_by = op.Mul(op.Sqrt(squares), 1.5)
    moved = sized(op.Add(a, op.Mul(identity(op, n), moved_by)), batch, n, n)
    found = rotated(op, moved, largest_first=False)
    values = sized(op.Sub(found.lengths, op.Squeeze(moved_by, op.ints(2))), batch, n)
    return Spectrum(values, found.v)
