"""Operators that are carried for complex numbers by what they do to elements, and not one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.lower.ops.faithful import faithful
from trueport.lower.table import is_leaf

aten = torch.ops.aten


def complex_(*sizes):
    return torch.randn(*sizes, dtype=torch.complex64)


def sums_of_exponentials(z):
    """Of numbers that are not far apart: eager's log1p is NaN where a number is too small to have all its digits."""
    z = z / (1 + z.abs())
    return z.logsumexp(1), z.logcumsumexp(1), torch.logaddexp(z, z * 2)


FAMILIES = {
    "views that copy": lambda z: (
        *(torch.view_copy(z, (-1,)), torch.permute_copy(z, (1, 0)), torch.expand_copy(z[:, :1], (-1, 4))),
        *(torch.unsqueeze_copy(z, 1), torch.transpose_copy(z, 0, 1), torch.narrow_copy(z, 1, 1, 2), torch.t_copy(z)),
        *(torch.squeeze_copy(z[:, :1]), torch.diagonal_copy(z), torch.unfold_copy(z, 1, 2, 1), torch.alias_copy(z)),
    ),
    "read as reals, and back": lambda z: (z.view(torch.float32), z.view(torch.float32).exp().view(torch.complex64)),
    "parts of it": lambda z: (*z.unsafe_chunk(2, 1), *torch.unsafe_split(z, 2, 1), *z.split([1, 2], 1)),
    "an axis of a number": lambda z: (z.sum().sum(0), z.mean().mean(0), z.sum().index_select(0, torch.tensor([0]))),
    "a real one among complex ones": lambda z: (
        *(torch.cat([z, z.real]), torch.stack([z.imag, z]), torch.block_diag(z, z.real)),
    ),
    "what is zero": lambda z: (z.all(1), z.any(), z.logical_and(z.real), z.nonzero(), z.count_nonzero(1), z.bool()),
    "what is close": lambda z: (z.isclose(z + 1e-9), torch.isclose(z, z + 1)),
    "put somewhere": lambda z: (
        *(z.put(torch.tensor([0, 2]), z[0, :2]), z.index_add(1, torch.tensor([0, 2]), z[:, :2])),
        *(torch.as_strided(z, (2, 2), (3, 1)), z.scatter(1, torch.tensor([[0, 1, 1]]), 2.0)),
        *(z.scatter_add(1, torch.tensor([[0, 1, 1]]), z), z.scatter_reduce(1, torch.tensor([[0, 1, 1]]), z, "sum")),
    ),
    "moved about": lambda z: (
        z.rot90(),
        z.movedim(0, 1),
        nn.functional.pixel_shuffle(z[None, None].tile(1, 4, 1, 1), 2),
    ),
    "spread": lambda z: (z.var(1), z.std(0, correction=0), *torch.var_mean(z, 1, keepdim=True), z.var()),
    "products": lambda z: (z.prod(1), z.cumprod(1), z.prod(0, keepdim=True)),
    "sums of exponentials": sums_of_exponentials,
    "in another dtype": lambda z: (z.sum(1, dtype=torch.cdouble), z.real.sum(1, dtype=torch.cfloat), z.cdouble()),
    "interpolated": lambda z: (torch.lerp(z, z + 1, 0.3), torch.rsub(z, 2, alpha=3), torch.float_power(z, 2)),
    "softmax of the real part": lambda z: torch.softmax(z, 1, dtype=torch.float32),
}


@pytest.mark.parametrize("function", FAMILIES.values(), ids=FAMILIES)
def test_a_family(function):
    faithful(function, complex_(3, 3) + 1)


FREE = {
    "spread": FAMILIES["spread"],
    "products": FAMILIES["products"],
    "what is zero": FAMILIES["what is zero"],
    "sums of exponentials": FAMILIES["sums of exponentials"],
    "a real one among complex ones": FAMILIES["a real one among complex ones"],
}


@pytest.mark.parametrize("function", FREE.values(), ids=FREE)
def test_a_family_of_any_sizes(function):
    faithful(function, complex_(4, 3), free=({0, 1},))


PRECISIONS = {
    "complex128": lambda z: (
        z * z.cdouble(),
        z + z.cdouble(),
        z.cdouble() / z,
        torch.where(z.real > 0, z, z.cdouble()),
    ),
    "float64": lambda z: (z * z.real.double(), z.real.double() - z, z / z.real.double(), z.real.double() ** z),
    "compared": lambda z: (z == z.cdouble(), z == z.real.double(), z.real.double() != z),
    "of a number": lambda z: (z * torch.tensor(2.0, dtype=torch.float64), z + torch.tensor(1j, dtype=torch.cdouble)),
    "integers and truth": lambda z: (
        z * torch.arange(3),
        torch.arange(3) - z,
        z**2,
        z * (z.real > 0),
        z * z.real.half(),
    ),
}


@pytest.mark.parametrize("function", PRECISIONS.values(), ids=PRECISIONS)
def test_other_dtypes_meet_complex_numbers_as_in_eager(function):
    faithful(function, complex_(3, 3))


def test_products_of_matrices_that_are_added():
    def forward(a, b, c):
        added = torch.addbmm(c, a, b, beta=2, alpha=1j), torch.baddbmm(c, a, b), torch.addmv(c[0], b[0].T, a[0, 0])
        return *added, torch.addr(c, a[0, :, 0], b[0, 0]), torch.vdot(a[0, 0], b[0, :, 0]), torch.linalg.cross(c, c + 1)

    faithful(forward, complex_(2, 4, 5), complex_(2, 5, 3), complex_(4, 3))


def test_an_operator_is_kept_whole_only_if_it_is_carried():
    """torch's definition of any other ends in operators that are."""
    assert is_leaf(aten.silu.default)
    assert not is_leaf(aten.silu.default, True)
    assert is_leaf(aten.view.default, True)
    assert is_leaf(aten.vdot.default, True)


def test_a_bias_that_only_a_layer_of_reals_has():
    faithful(nn.Linear(3, 2).to(torch.complex64), complex_(4, 3), free=({0},))
