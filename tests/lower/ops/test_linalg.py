"""Linear algebra by Loops of float64: LAPACK's results, for batches, free sizes and empty matrices."""

from __future__ import annotations

import pytest
import torch

import trueport
from tests.lower.ops.faithful import faithful
from tests.lower.through_onnx import check

linalg = torch.linalg


def matrices(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def definite(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    a = matrices(*sizes, sizes[-1], dtype=torch.float64)
    return (a @ a.mT + torch.eye(sizes[-1], dtype=torch.float64)).to(dtype)


SQUARE = {
    "inverse": linalg.inv,
    "inverse with its info": linalg.inv_ex,
    "determinant": linalg.det,
    "sign and logarithm of the determinant": linalg.slogdet,
    "a negative power": lambda a: linalg.matrix_power(a, -3),
    "LU": linalg.lu,
    "LU in one matrix, with pivots": linalg.lu_factor_ex,
    "LU unpacked": lambda a: torch.lu_unpack(*linalg.lu_factor(a)),
    "solved from the right": lambda a: linalg.solve(a, a.mT + 1, left=False),
    "solved by its LU": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a.mT + 1, adjoint=True),
    "lower triangle": lambda a: linalg.solve_triangular(a.tril() + 9, a, upper=False),
    "upper triangle from the right": lambda a: linalg.solve_triangular(a + 9, a, upper=True, left=False),
    "QR": linalg.qr,
    "eigenvalues": lambda a: linalg.eigvalsh(a + a.mT),
    "of the upper triangle only": lambda a: linalg.eigvalsh(a, UPLO="U"),
    "condition": linalg.cond,
    "condition in other norms": lambda a: (linalg.cond(a, 1), linalg.cond(a, "fro"), linalg.cond(a, -2)),
}
"""Functions of square matrices."""


@pytest.mark.parametrize("function", SQUARE.values(), ids=SQUARE)
def test_square_matrices_of_any_size(function):
    a, b = matrices(2, 4, 4), matrices(3, 5, 5, seed=1)
    check(function, (a,), (b,), (matrices(1, 1, 1),), free={0: {0: "batch", 1: "n", 2: "n"}}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", SQUARE.values(), ids=SQUARE)
def test_square_matrices_in_float64(function):
    check(function, (matrices(7, 7, dtype=torch.float64),), rtol=1e-10, atol=1e-10)


DEFINITE = {
    "Cholesky": linalg.cholesky,
    "upper Cholesky": lambda a: linalg.cholesky_ex(a, upper=True),
    "solved by Cholesky": lambda a: torch.cholesky_solve(a.sum(-1, keepdim=True), linalg.cholesky(a)),
    "inverted by Cholesky": lambda a: torch.cholesky_inverse(linalg.cholesky(a, upper=True), upper=True),
    "whitened": lambda a: linalg.solve_triangular(linalg.cholesky(a), a, upper=False),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", DEFINITE.values(), ids=DEFINITE)
def test_positive_definite_matrices(function, dtype):
    free = {0: {0: "batch", 1: "n", 2: "n"}}
    check(function, (definite(2, 4, dtype=dtype),), (definite(1, 6, dtype=dtype),), free=free, rtol=1e-4, atol=1e-4)


RECTANGULAR = {
    "QR": linalg.qr,
    "complete QR": lambda a: linalg.qr(a, mode="complete"),
    "R only": lambda a: linalg.qr(a, mode="r")[1],
    "reflections": torch.geqrf,
    "product of reflections": lambda a: linalg.householder_product(a @ a.mT, a[..., 0]),
    "multiplied by Q": lambda a: torch.ormqr(*torch.geqrf(a), a @ a.mT, left=False, transpose=True),
    "singular values": linalg.svdvals,
    "nuclear and spectral norm": lambda a: (linalg.matrix_norm(a, "nuc"), linalg.matrix_norm(a, 2)),
    "rank": linalg.matrix_rank,
    "pseudo-inverse": linalg.pinv,
    "put together from its parts": lambda a: _composed(a, full=False),
    "put together from all of them": lambda a: _composed(a, full=True),
    "least squares": lambda a: linalg.lstsq(a, a @ a.mT).solution,
}


def _composed(a: torch.Tensor, *, full: bool) -> tuple[torch.Tensor, ...]:
    """What does not depend on the signs of singular vectors."""
    u, s, vh = linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    return (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], s, u @ u.mT, vh.mT @ vh


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(5, 3), (2, 3, 4)], ids=["tall", "wide"])
@pytest.mark.parametrize("function", RECTANGULAR.values(), ids=RECTANGULAR)
def test_rectangular_matrices(function, sizes, dtype):
    tolerance = 1e-4 if dtype is torch.float32 else 1e-9
    check(function, (matrices(*sizes, dtype=dtype),), rtol=tolerance, atol=tolerance)


def test_singular_values_of_any_sizes():
    more = [(matrices(*sizes),) for sizes in ((3, 4), (6, 2), (1, 1))]
    check(
        lambda a: (linalg.svdvals(a), linalg.pinv(a)),
        (matrices(4, 3),),
        *more,
        free={0: {0: "m", 1: "n"}},
        rtol=1e-4,
        atol=1e-4,
    )


def test_no_tolerance_at_all():
    more = [(matrices(2, 4),), (matrices(1, 3),)]
    free = {0: {0: "m", 1: "n"}}
    check(lambda a: linalg.pinv(a, rtol=0.0), (matrices(4, 3),), *more, free=free, rtol=1e-4, atol=1e-4)


def test_what_is_not_of_full_rank():
    a = matrices(5, 2) @ matrices(2, 4, seed=1)
    check(
        lambda a: (linalg.svdvals(a), linalg.pinv(a), linalg.matrix_rank(a)),
        (a,),
        (torch.zeros(5, 4),),
        rtol=0,
        atol=1e-4,
    )
    check(lambda a: linalg.lstsq(a, a[:, :1]).solution, (a,), rtol=1e-4, atol=1e-4)
    check(lambda a: (linalg.det(a), linalg.inv_ex(a).info, linalg.cond(a, 1)), (torch.ones(3, 3),))


def test_the_factors_of_ties_and_equal_rows_multiply_to_the_matrix():
    """Whole numbers have ties, and equal rows leave nothing but rounding: which row is the pivot then is a matter of
    eager's LAPACK, another one on another machine. What the factors multiply to is not."""

    def product(a):
        p, low, up = linalg.lu(a)
        return p @ low @ up

    whole = torch.randint(-2, 3, (50, 6, 6), generator=torch.Generator().manual_seed(0)).float()
    same = torch.full((6, 6), 1.0) * matrices(50, 1, 1) * 3
    check(product, (torch.cat([whole, same]),), rtol=1e-4, atol=1e-4)


def test_pivots_are_eagers_where_nothing_else_would_do():
    """Rows of different magnitudes leave no choice."""
    order = torch.tensor([3.0, 0.0, 2.0, 1.0])
    a = matrices(4, 4).clamp(-0.5, 0.5) * 0.1 + torch.diag(torch.ones(4))[order.long()] * 10
    check(linalg.lu_factor_ex, (a,), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [linalg.inv, linalg.inv_ex, linalg.slogdet, linalg.lu_factor_ex])
def test_functions_of_any_matrix_are_proven_on_singular_ones_too(function):
    faithful(lambda a: function(a), matrices(5, 5))


def test_what_is_not_positive_definite_is_left_as_it_is():
    check(linalg.cholesky_ex, (torch.stack([torch.zeros(3, 3), -torch.eye(3), definite(3)]),), rtol=1e-5, atol=1e-5)


def test_badly_conditioned_matrices():
    """Hilbert's matrix: in float64, its eigenvalues span 13 orders of magnitude."""
    n = torch.arange(1.0, 10.0, dtype=torch.float64)
    hilbert = 1 / (n[:, None] + n - 1)
    check(lambda a: (linalg.eigvalsh(a), linalg.svdvals(a)), (hilbert,), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("function", [linalg.inv, linalg.det, linalg.lu, linalg.eigvalsh, linalg.pinv, linalg.cholesky])
def test_nothing(function):
    check(function, (torch.zeros(0, 0),))
    check(function, (torch.zeros(0, 3, 3),))


def test_the_condition_of_nothing():
    check(linalg.cond, (matrices(2, 3, 3),), (torch.zeros(2, 0, 0),), free={0: {1: "n", 2: "n"}}, rtol=1e-4, atol=1e-4)


def test_a_vector_and_a_batch_on_the_right_side():
    a = matrices(2, 3, 3)
    check(linalg.solve, (a[0], matrices(3)))
    check(linalg.solve, (a, matrices(2, 3)))
    check(linalg.solve, (a, matrices(3, 4)))
    check(linalg.solve, (a[:1], matrices(5, 3, 2)))
    check(lambda a, b: torch.linalg.tensorsolve(a, b), (torch.eye(24).reshape(4, 6, 8, 3) + 0.1, matrices(4, 6)))


def test_a_rotation_by_singular_vectors_does_not_depend_on_their_signs():
    """Kabsch's best rotation between two clouds of points."""

    def forward(p, q):
        u, _, vh = linalg.svd((p - p.mean(0)).T @ (q - q.mean(0)))
        flip = torch.ones(3)
        flip[2] = linalg.det(u @ vh).sign()
        return (u * flip) @ vh

    program = faithful(forward, matrices(8, 3), matrices(8, 3, seed=1))
    assert {found.code for found in program.report.diagnostics} == {"TP503"}


def test_vectors_whose_signs_matter_are_refused():
    with pytest.raises(trueport.ExportError) as refused:
        faithful(lambda a: linalg.eigh(a + a.mT)[1], matrices(4, 4))
    assert {"TP503", "TP805"} <= {found.code for found in refused.value.diagnostics}


def test_eigenvalues_without_an_order_are_refused():
    with pytest.raises(trueport.ExportError) as refused:
        faithful(lambda a: linalg.eigvals(a).abs(), matrices(3, 3))
    assert "eigvalsh" in str(refused.value.diagnostics[0])


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
def test_least_squares_by_each_driver(driver):
    def forward(a, b):
        found = linalg.lstsq(a, b, driver=driver)
        return found.solution, *((found.rank,) if driver != "gels" else ())

    tall, wide = (matrices(2, 5, 3), matrices(2, 5, 2, seed=1)), (matrices(2, 3, 5), matrices(2, 3, 2, seed=1))
    check(forward, tall, rtol=1e-4, atol=1e-4)
    check(forward, wide, rtol=1e-4, atol=1e-4)


def test_a_product_over_nothing_is_zero():
    check(lambda a, b: a @ b.mT, (torch.zeros(2, 3, 0, dtype=torch.float64), torch.zeros(2, 5, 0, dtype=torch.float64)))


COMPLEX = {
    "inverse": lambda z: linalg.inv(z),
    "solutions": lambda z: (linalg.solve(z, z.mH + 1), linalg.solve(z, z[..., 0]), linalg.solve(z, z.mT, left=False)),
    "triangle": lambda z: linalg.solve_triangular(z, z.mT, upper=True, left=False),
    "Cholesky": lambda z: linalg.cholesky(z @ z.mH + torch.eye(3)),
    "solved by Cholesky": lambda z: torch.cholesky_solve(z, linalg.cholesky(z @ z.mH + torch.eye(3), upper=True), True),
    "LU": lambda z: (*linalg.lu(z), *linalg.lu_factor_ex(z)[1:]),
    "solved by its LU": lambda z: linalg.lu_solve(*linalg.lu_factor(z), z.mT, adjoint=True),
    "determinant": lambda z: (linalg.det(z), *linalg.slogdet(z)),
    "QR": lambda z: (*linalg.qr(z[..., :2]), *linalg.qr(z[..., :2], mode="complete")),
    "multiplied by Q": lambda z: torch.ormqr(*torch.geqrf(z), z + 1, left=False, transpose=True),
    "exponential": linalg.matrix_exp,
    "values": lambda z: (linalg.svdvals(z[..., :2]), linalg.eigvalsh(z), linalg.eigvalsh(z, UPLO="U")),
    "pseudo-inverse": lambda z: (linalg.pinv(z[..., :2]), linalg.pinv(z + z.mH, hermitian=True)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", COMPLEX.values(), ids=COMPLEX)
def test_complex_matrices(function, dtype):
    def forward(pairs):
        results = function(torch.view_as_complex(pairs))
        results = results if isinstance(results, tuple) else (results,)
        return tuple(torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in results)

    tolerance = 1e-4 if dtype is torch.float32 else 1e-9
    check(forward, (matrices(2, 3, 3, 2, dtype=dtype),), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exponentials(dtype):
    a = torch.cat([matrices(2, 3, 3), 6 * matrices(1, 3, 3), torch.zeros(1, 3, 3)]).to(dtype)
    more = [
        (matrices(1, 4, 4, dtype=dtype),),
        (torch.zeros(0, 2, 2, dtype=dtype),),
        (torch.zeros(1, 0, 0, dtype=dtype),),
    ]
    free = {0: {0: "batch", 1: "n", 2: "n"}}
    tolerance = 1e-4 if dtype is torch.float32 else 1e-10
    check(linalg.matrix_exp, (a,), *more, free=free, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_distances_of_all_pairs(p):
    check(lambda x: torch.pdist(x, p), (matrices(5, 3),), (matrices(2, 3),), (matrices(1, 3),), free={0: {0: "n"}})


def test_a_transposed_matrix_times_a_vector():
    """The runtime joins the transposition with the product, and reads a vector on the right wrongly after that."""
    faithful(lambda a, b, v: (a.T @ v, b.mT @ v, v @ a, torch.mv(a.T, v)), *map(torch.randn, ((5, 3), (2, 5, 3), (5,))))


def test_a_product_that_is_multiplied_by_several_factors():
    """Each factor is kept from becoming an attribute of the product by a node of its own."""

    def forward(a, b):
        product = a @ b
        return product * 0.1 + product * 0.3

    faithful(forward, torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64))
    faithful(torch.matrix_exp, torch.randn(3, 3))
