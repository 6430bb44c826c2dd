"""Decompositions of complex matrices, and solutions by them."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.faithful import faithful


def complex_(*sizes):
    return torch.randn(*sizes, dtype=torch.complex64)


def hermitian(*sizes):
    z = complex_(*sizes)
    return z + z.mH


def by_eigenvectors(h):
    values, vectors = torch.linalg.eigh(h)
    return values, (vectors * torch.sigmoid(values)[..., None, :]) @ vectors.mH


def by_singular_vectors(full):
    def forward(z):
        u, s, vh = torch.linalg.svd(z, full_matrices=full)
        k = s.shape[-1]
        return s, (u[..., :k] * (s / (s + 1))[..., None, :]) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH

    return forward


@pytest.mark.parametrize("sizes", [(4, 4), (2, 3, 3), (1, 1), (0, 0)])
def test_eigenvectors_up_to_their_phase(sizes):
    program = faithful(by_eigenvectors, hermitian(*sizes))
    told = [found.message for found in program.report.diagnostics if found.code == "TP503"]
    assert told and "phase" in told[0]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("sizes", [(4, 3), (2, 2, 4), (0, 3)])
def test_singular_vectors_up_to_their_phase(sizes, full):
    faithful(by_singular_vectors(full), complex_(*sizes))


def test_a_batch_of_any_size():
    faithful(by_singular_vectors(False), complex_(2, 3, 2), free=({0},))
    faithful(by_eigenvectors, hermitian(2, 3, 3), free=({0},))


def test_equal_singular_values_have_orthogonal_vectors():
    faithful(by_singular_vectors(True), torch.eye(3, dtype=torch.complex64) * (1 + 2j))


def solutions_by_lu(a, b):
    factors, pivots = torch.linalg.lu_factor(a)
    return tuple(
        torch.linalg.lu_solve(factors, pivots, b if left else b.mT, left=left, adjoint=adjoint)
        for left in (True, False)
        for adjoint in (True, False)
    )


def test_solutions_by_lu_from_either_side():
    faithful(solutions_by_lu, complex_(2, 3, 3), complex_(2, 3, 2))


def solutions_by_triangles(a, b):
    return tuple(
        torch.linalg.solve_triangular(a, b if left else b.mT, upper=upper, left=left, unitriangular=unit)
        for left in (True, False)
        for upper in (True, False)
        for unit in (True, False)
    )


def test_solutions_by_triangles_even_where_there_is_none():
    faithful(solutions_by_triangles, complex_(3, 3), complex_(3, 2))


def test_solutions_by_the_factor_of_cholesky():
    def forward(z, b):
        factor = torch.linalg.cholesky(z @ z.mH + 3 * torch.eye(3))
        return (
            torch.cholesky_solve(b, factor),
            torch.cholesky_solve(b, factor.mH, upper=True),
            torch.cholesky_inverse(factor),
        )

    faithful(forward, complex_(3, 3), complex_(3, 2))


@pytest.mark.parametrize("sizes", [(4, 3), (3, 3), (2, 3)])
def test_least_squares(sizes):
    faithful(lambda a, b: torch.linalg.lstsq(a, b, driver="gels")[:2], complex_(*sizes), complex_(sizes[0], 2))


def test_the_rank_of_a_matrix():
    faithful(lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd")[2:], complex_(3, 3), complex_(3, 2))
