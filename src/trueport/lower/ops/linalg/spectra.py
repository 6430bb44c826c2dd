"""Singular values, eigenvalues of symmetric matrices, their vectors, pseudo-inverses and least squares."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from trueport.diagnostics.rules.tp503_arbitrary_vectors import ArbitraryVectors
from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.ops.axes import slice_axis
from trueport.lower.ops.linalg.jacobi import Rotated, rotated, spectrum
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    batch_of,
    diagonal_of,
    flipped,
    larger,
    lower_part,
    sized,
    smaller,
    stacked,
    unstacked,
    upper_part,
)
from trueport.lower.ops.linalg.qr import qr_of
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


def _is_tall(op: Builder, rows: Size, columns: Size) -> bool:
    """Whether to rotate the columns; otherwise the rows. Of free sizes nobody knows: both are right, one is faster."""
    return not (isinstance(rows, int) and isinstance(columns, int)) or rows >= columns


@op("aten::_linalg_svd")
def svd(
    op: Builder, A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> Any:
    """_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)
    -> (Tensor U, Tensor S, Tensor Vh)
    """
    batch, a = batch_of(A), stacked(op, A)
    total, rows, columns = a.known_sizes
    least = smaller(rows, columns)
    tall = _is_tall(op, rows, columns)
    found = rotated(op, a if tall else flipped(op, a))
    values = sized(slice_axis(op, found.lengths, 1, 0, least), total, least)
    values = unstacked(op, values, batch)
    if not compute_uv:
        nothing = sized(op.const([], A.element), 0)
        return nothing, values, nothing
    if not op.wants(0, 2):
        return None, values, None
    note_arbitrary(op, "svd")
    left, right = _both_sides(op, found, full_matrices)
    u, v = (left, right) if tall else (right, left)
    return unstacked(op, u, batch), values, flipped(op, unstacked(op, v, batch))


def _both_sides(op: Builder, found: Rotated, full: bool) -> tuple[Tensor, Tensor]:
    """The left and the right singular vectors, as columns.

    The columns of w are orthogonal, so QR of them is exact and gives an orthonormal basis also where some are zero, and
    for the rest of the space.
    """
    total, rows, columns = found.w.known_sizes
    least = smaller(rows, columns)
    w = sized(slice_axis(op, found.w, 2, 0, least), total, rows, least)
    q, r = qr_of(op, w, complete=full)
    square = sized(slice_axis(op, r, 1, 0, least), total, least, least)
    signs = op.Where(op.Less(diagonal_of(op, square), 0), op.const(-1, DOUBLE), op.const(1, DOUBLE))
    if full:
        others = op.Sub(op.size(rows), op.size(least))
        ends = op.Concat(op.ints(0, 0, 0), op.Reshape(others, op.ints(1)), axis=0)
        signs = op.Pad(signs, ends, op.const(1, DOUBLE))
    left = sized(op.Mul(q, op.Unsqueeze(signs, op.ints(1))), *q.known_sizes)
    right = found.v if full else sized(slice_axis(op, found.v, 2, 0, least), total, columns, least)
    return left, right


def _symmetric(op: Builder, a: Tensor, uplo: str) -> Tensor:
    """The matrix of which one triangle is given."""
    part, strict = (lower_part(op, a, shift) for shift in (0, -1))
    if uplo.upper() == "U":
        part, strict = (upper_part(op, a, shift) for shift in (0, 1))
    return sized(op.Add(part, flipped(op, strict)), *a.known_sizes)


@op("aten::_linalg_eigh")
def eigh(op: Builder, A: Tensor, UPLO: str = "L", compute_v: bool = True) -> Any:
    """_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)"""
    batch = batch_of(A)
    found = spectrum(op, _symmetric(op, stacked(op, A), UPLO))
    values = unstacked(op, found.values, batch)
    if not compute_v:
        return values, sized(op.const([], A.element), 0)
    if not op.wants(1):
        return values, None
    note_arbitrary(op, "eigh")
    return values, unstacked(op, found.vectors, batch)


def note_arbitrary(op: Builder, name: str, choice: str = "sign") -> None:
    """What eager's library chose, nobody can know: the sign of a vector, or the phase of a complex one."""
    op.notes.append(
        ArbitraryVectors(
            message=f"the vectors of `{name}` are given up to their {choice}, which eager's library chooses in its "
            "own way",
            place=op.node.place if op.node else None,
            label="only their directions are the same as eager's",
        )
    )


@op("aten::linalg_pinv.atol_rtol_tensor")
def pinv(
    op: Builder, self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)
    -> Tensor
    """
    batch, a = batch_of(self), stacked(op, self)
    rows, columns = self.known_sizes[-2:]
    absolute, relative = tolerances(op, atol, rtol, self.element, larger(rows, columns), batch)
    if hermitian:
        result = symmetric_pseudo_inverse(op, _symmetric(op, a, "L"), absolute, relative)
    else:
        result = pseudo_inverse(op, a, absolute, relative)
    return unstacked(op, sized(result, a.known_sizes[0], columns, rows), batch)


def symmetric_pseudo_inverse(op: Builder, a: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """The pseudo-inverse of symmetric matrices [batch, n, n], by their eigenvalues."""
    found = spectrum(op, a)
    kept = above(op, op.Abs(found.values), absolute, relative)
    factors = op.Where(kept, op.Reciprocal(found.values), op.const(0, DOUBLE))
    return op.MatMul(op.Mul(found.vectors, op.Unsqueeze(factors, op.ints(1))), flipped(op, found.vectors))


def tolerances(
    op: Builder, atol: Tensor | None, rtol: Tensor | None, dtype: ir.DataType, size: Size, batch: tuple[Size, ...]
) -> tuple[Tensor, Tensor]:
    """[batch or 1, 1] each. Without any, the dtype's precision times the size; with an absolute one only, it."""
    epsilon = op.Mul(op.cast(op.size(size), DOUBLE), float(dtype.eps))

    def as_column(x: Tensor) -> Tensor:
        return op.Reshape(op.cast(op.expand(x, batch), DOUBLE), op.ints(-1, 1))

    zero = op.const([[0.0]], DOUBLE)
    absolute = zero if atol is None else as_column(atol)
    if rtol is not None:
        return absolute, as_column(rtol)
    return absolute, op.Where(op.Greater(absolute, zero), zero, epsilon)


def above(op: Builder, values: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """Which singular values count, [batch, n]."""
    most = op.ReduceMax(op.Pad(values, op.ints(0, 0, 0, 1)), op.ints(1), keepdims=1)
    return op.Greater(values, op.Max(absolute, op.Mul(relative, most)))


def pseudo_inverse(op: Builder, a: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """The pseudo-inverse of [batch, rows, columns]: v / length @ (w / length).T, of the lengths that count."""
    tall = _is_tall(op, *a.known_sizes[1:])
    found = rotated(op, a if tall else flipped(op, a))
    # A wide matrix has no more singular values than rows; the other columns are rounding.
    columns = found.lengths.known_sizes[1]
    exist = op.Less(op.range(columns), op.size(smaller(*a.known_sizes[1:])))
    kept = op.And(above(op, found.lengths, absolute, relative), exist)
    factors = op.Unsqueeze(op.Where(kept, op.Reciprocal(found.lengths), op.const(0, DOUBLE)), op.ints(1))
    v = sized(op.Mul(found.v, factors), *found.v.known_sizes)
    w = sized(op.Mul(found.w, factors), *found.w.known_sizes)
    return op.MatMul(v, flipped(op, w)) if tall else op.MatMul(w, flipped(op, v))
