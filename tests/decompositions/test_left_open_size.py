"""A -1 beside sizes that depend on values, or on a branch."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.capture.helpers import FREE, assert_exported


def test_beside_a_size_that_depends_on_values():
    def model(x):
        kept = x[:, x[0] > 0]
        return kept.reshape(-1, kept.shape[1]), kept.reshape(kept.shape[1], -1), kept[None].view(-1, kept.shape[1], 1)

    def given(n):
        x = torch.randn(n, 5)
        x[0, :2] = 1
        return (x,)

    assert_exported(model, given(3), [given(4)], dynamic_shapes=({0: FREE},))


def test_beside_a_size_that_a_branch_has_chosen():
    def padded(x):
        rows = x.reshape(-1, x.shape[2], 4)
        length = rows.shape[1]
        if length % 8 != 0:
            rows = F.pad(rows, (0, 0, 0, 8 - length % 8))
        windows = rows.reshape(rows.shape[0], rows.shape[1] // 8, 8, 4)
        return windows.flatten(1, 2)[:, :length].reshape(x.shape[0], -1, length, 4)

    def model(x):
        return padded(padded(x) * 2)

    others = [(torch.randn(3, 2, n, 4),) for n in (8, 3, 17)]
    assert_exported(model, (torch.randn(2, 2, 7, 4),), others, dynamic_shapes=({0: FREE, 2: FREE},))
