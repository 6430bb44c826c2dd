"""Masks of bytes are masks of bools, wherever eager still takes them."""

from __future__ import annotations

import pytest
import torch

from tests.capture.helpers import FREE, assert_exported

pytestmark = pytest.mark.filterwarnings("ignore:.*uint8")


def _written(x, mask):
    y = x.clone()
    y[mask] = x[mask] * 2
    return y


@pytest.mark.parametrize(
    "model",
    [
        lambda x, mask: torch.where(mask, x, -x),
        lambda x, mask: torch.where(mask, x, 0.0),
        lambda x, mask: x[mask],
        lambda x, mask: x[mask[:, 0]],
        _written,
    ],
)
def test_a_mask_of_bytes(model):
    def given(n):
        return torch.randn(n, 3), (torch.rand(n, 3) > 0.5).to(torch.uint8)

    assert_exported(model, given(4), [given(7)], dynamic_shapes=({0: FREE}, {0: FREE}))
