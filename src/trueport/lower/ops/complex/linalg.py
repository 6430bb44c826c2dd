"""Linear algebra of complex matrices, by real ones of twice the size.

Each entry a + bi is the block [[a, -b], [b, a]]. Products, inverses, solutions, exponentials and adjoints of such
matrices are those of the complex ones; a Cholesky factor too, since its diagonal is real. Singular values and
eigenvalues come twice.
"""

from __future__ import annotations

import math
from typing import Any

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_only, complex_op
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.ops.axes import broadcast, count
from trueport.lower.ops.linalg.elimination import as_if_regular, eliminated, solution
from trueport.lower.ops.linalg.matrices import (
    DOUBLE,
    INT32,
    down,
    flipped,
    identities,
    identity,
    larger,
    sized,
)
from trueport.lower.ops.linalg.matrix_exp import exponentials
from trueport.lower.ops.linalg.spectra import pseudo_inverse, symmetric_pseudo_inverse, tolerances
from trueport.lower.tensor import Tensor


def batch_of(z: Complex) -> tuple[Size, ...]:
    return z.pairs.known_sizes[:-3]


def doubled(op: Builder, z: Complex, batch: tuple[Size, ...] | None = None) -> Tensor:
    """[total, 2 * rows, 2 * columns], in float64; where a batch is named, broadcast to it."""
    rows, columns = z.pairs.known_sizes[-3:-1]
    batch = batch_of(z) if batch is None else batch
    pairs = op.expand(z.pairs, (*batch, rows, columns, 2))
    pairs = op.cast(op.reshape(pairs, (count(batch), rows, columns, 2)), DOUBLE)
    real, imaginary = op.many("Split", 2, pairs, op.ints(1, 1), axis=-1)
    upper = op.Concat(real, op.Neg(imaginary), axis=-1)
    lower = op.Concat(imaginary, real, axis=-1)
    blocks = op.Concat(op.Unsqueeze(upper, op.ints(2)), op.Unsqueeze(lower, op.ints(2)), axis=2)
    blocks.settle((count(batch), rows, 2, columns, 2))
    return op.reshape(blocks, (count(batch), rows * 2, columns * 2))


def halved(op: Builder, x: Tensor, batch: tuple[Size, ...], rows: Size, columns: Size) -> Complex:
    """What `doubled` would make `x` of."""
    blocks = op.reshape(x, (count(batch), rows, 2, columns, 2))
    first = sized(op.Gather(blocks, op.const(0), axis=4), count(batch), rows, 2, columns)
    return Complex(op.reshape(op.transpose(first, [0, 1, 3, 2]), (*batch, rows, columns, 2)))


def _info(op: Builder, info: Tensor, batch: tuple[Size, ...]) -> Tensor:
    """The column of the complex matrix that the column of the real one belongs to."""
    return op.cast(op.reshape(sized(op.Div(op.Add(info, 1), 2), *info.known_sizes), batch), INT32)


@complex_op("aten::eye", "aten::eye.m")
def eye(op: Builder, n: Size, m: Size | None = None, **_: Any) -> Complex:
    """eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, ...) -> Tensor"""
    rows, columns = op.result.shape
    real = op.Unsqueeze(identity(op, rows, columns, onnx_dtype(op.result.dtype.to_real())), op.ints(2))
    return Complex(op.Concat(real, op.Mul(real, 0), axis=2))


@complex_op("aten::linalg_inv_ex")
def inverse(op: Builder, A: Complex, *, check_errors: bool = False) -> Any:
    """linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"""
    batch, n = batch_of(A), A.pairs.known_sizes[-2]
    a = doubled(op, A)
    factors = eliminated(op, a)
    if not op.wants(1):
        factors = as_if_regular(op, factors, a, A.pairs.element)
    x = solution(op, factors, identities(op, *a.known_sizes[:2]))
    return halved(op, x, batch, n, n), _info(op, factors.info, batch)


@complex_op("aten::_linalg_solve_ex")
def solve_ex(op: Builder, A: Complex, B: Complex, *, left: bool = True, check_errors: bool = False) -> Any:
    """_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)
    -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)
    """
    is_vector = B.rank == 1 or (B.rank == A.rank - 1 and len(op.result.shape) == B.rank)
    if is_vector:
        sizes = B.pairs.known_sizes
        B = Complex(op.reshape(B.pairs, (*sizes[:-1], 1, 2)))
    x, info = solved(op, A, B, left=left, checked=not op.wants(1, 2, 3))
    if is_vector:
        x = Complex(op.Squeeze(x.pairs, op.ints(x.pairs.rank - 2)))
    return x, None, None, info


def solved(op: Builder, a: Complex, b: Complex, *, left: bool = True, checked: bool = False) -> tuple[Complex, Any]:
    """x of a @ x = b, or of x @ a = b, which is the adjoint's; with eager's info, unless batches are broadcast."""
    batch = broadcast(batch_of(a), batch_of(b))
    matrix, right = doubled(op, a, batch), doubled(op, b, batch)
    rows, columns = b.pairs.known_sizes[-3:-1]
    factors = eliminated(op, matrix if left else flipped(op, matrix))
    factors = as_if_regular(op, factors, matrix, a.pairs.element) if checked else factors
    x = solution(op, factors, right if left else flipped(op, right))
    info = _info(op, factors.info, batch) if batch == batch_of(a) else None
    return halved(op, x if left else flipped(op, x), batch, rows, columns), info


def triangle(op: Builder, z: Complex, *, upper: bool, unit: bool = False) -> Complex:
    """The matrix without its other half; with ones on its diagonal, if they are meant to be there."""
    rows, columns = z.pairs.known_sizes[-3:-1]
    row, column = op.Unsqueeze(down(op, rows), op.ints(2)), op.Unsqueeze(op.range(columns), op.ints(1))
    keep = op.LessOrEqual(row, column) if upper else op.GreaterOrEqual(row, column)
    kept = op.Where(keep, z.pairs, op.const(0, z.pairs.element))
    if unit:
        kept = op.Where(op.Equal(row, column), op.const([1, 0], z.pairs.element), kept)
    return Complex(sized(kept, *z.pairs.known_sizes))


@complex_op("aten::linalg_matrix_exp", "aten::matrix_exp")
def matrix_exp(op: Builder, self: Complex) -> Complex:
    """linalg_matrix_exp(Tensor self) -> Tensor: NaN where a product overflows, as products of complex numbers do"""
    n = self.pairs.known_sizes[-2]
    pairs = halved(op, exponentials(op, doubled(op, self)), batch_of(self), n, n).pairs
    infinite = op.IsInf(op.cast(pairs, self.pairs.element))
    return Complex(op.Where(infinite, op.const(math.nan, DOUBLE), pairs))


@complex_op("aten::linalg_pinv.atol_rtol_tensor")
def pinv(
    op: Builder, self: Complex, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Complex:
    """linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)
    -> Tensor
    """
    rows, columns = self.pairs.known_sizes[-3:-1]
    absolute, relative = tolerances(op, atol, rtol, self.pairs.element, larger(rows, columns), batch_of(self))
    if hermitian:
        found = symmetric_pseudo_inverse(op, _hermitian(op, self, "L"), absolute, relative)
    else:
        found = pseudo_inverse(op, doubled(op, self), absolute, relative)
    return halved(op, found, batch_of(self), columns, rows)


def _hermitian(op: Builder, z: Complex, uplo: str) -> Tensor:
    """The doubled matrix of which one triangle is given.

    Its adjoint gives the other half; the diagonal, of which both have the real part, would be there twice.
    """
    n = z.pairs.known_sizes[-2]
    half = doubled(op, triangle(op, z, upper=uplo.upper() == "U"))
    on_diagonal = op.Equal(op.Div(down(op, n * 2), 2), op.Div(op.range(n * 2), 2))
    share = op.Where(on_diagonal, op.const(0.5, DOUBLE), op.const(1.0, DOUBLE))
    return sized(op.Mul(op.Add(half, flipped(op, half)), share), *half.known_sizes)


@complex_only("aten::linalg_eig")
def eig(op: Builder, self: Tensor | Complex) -> Any:
    """linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"""
    raise NotImplementedError(
        "the eigenvalues of a matrix that need not be symmetric come in the order in which LAPACK happens to find "
        "them; of a symmetric one, torch.linalg.eigh and eigvalsh are carried"
    )
