"""Binary search as torch does it."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.faithful import faithful

BORDERS = torch.tensor([-1.0, -0.5, 0.0, 0.0, 0.5, 2.0])


@pytest.mark.parametrize("right", [False, True])
def test_between_borders(right):
    faithful(lambda x: torch.bucketize(x, BORDERS, right=right), torch.randn(3, 4), free=({0, 1},))


def test_rows_in_rows_whatever_their_length():
    def forward(rows, x):
        return torch.searchsorted(rows.sort(-1).values, x), torch.searchsorted(rows, x, side="right", out_int32=True)

    faithful(forward, torch.randn(2, 5), torch.randn(2, 3), free=({1}, {1}))


def test_by_a_sorter():
    def forward(rows, x):
        return torch.searchsorted(rows, x, sorter=rows.argsort(dim=-1, stable=True))

    faithful(forward, torch.randn(2, 5), torch.randn(2, 3))


def test_runs_along_an_axis():
    def forward(x):
        return torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1)

    faithful(forward, torch.tensor([[1, 1, 2, 2, 1], [0, 0, 3, 3, 0]]))
