"""Dicts in which a model keeps what it made for a size: its own attributes, its class's, or globals of its file."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import FREE, assert_kept_alive

GRIDS: dict[object, torch.Tensor] = {}
LATEST: torch.Tensor | None = None
SIZES = [(1, 2, 3), (2, 5, 1), (1, 4, 4), (1, 0, 2)]
OTHERS = [(torch.randn(sizes),) for sizes in SIZES]
PICTURE = ({0: FREE, 1: FREE, 2: FREE},)


def grid(height, width):
    return torch.arange(height).unsqueeze(1) * 10.0 + torch.arange(width)


class ByPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = (x.shape[1], x.shape[2], "cpu")
        if key not in self.cache:
            self.cache[key] = grid(x.shape[1], x.shape[2])
        return x + self.cache[key]


class EarlyReturn(ByPair):
    def made(self, height, width):
        if (height, width) in self.cache:
            return self.cache[height, width]
        self.cache[height, width] = grid(height, width)
        return self.cache[height, width]

    def forward(self, x):
        return x + self.made(x.shape[1], x.shape[2])


class ByGet(ByPair):
    def forward(self, x):
        row = self.cache.get(x.size(-1))
        if row is None:
            row = self.cache[x.size(-1)] = torch.arange(x.size(-1)).float()
        return x + row


class BySetDefault(ByPair):
    def forward(self, x):
        return x + self.cache.setdefault(x.size(-1), torch.arange(x.size(-1)).float())


class OfTheClass(ByPair):
    shared: dict[object, torch.Tensor] = {}

    def forward(self, x):
        if x.shape[1:] not in self.shared:
            self.shared[x.shape[1:]] = grid(x.shape[1], x.shape[2])
        return x + self.shared[x.shape[1:]]


class OfTheFile(nn.Module):
    def forward(self, x):
        key = str(x.size())
        if key not in GRIDS:
            GRIDS[key] = grid(x.shape[1], x.shape[2])
        return x + GRIDS[key]


class BoundAnew(nn.Module):
    def forward(self, x):
        global LATEST
        LATEST = grid(x.shape[1], x.shape[2])
        return x + LATEST


KINDS = [ByPair, EarlyReturn, ByGet, BySetDefault, OfTheClass, OfTheFile, BoundAnew]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_by_size(kind):
    """And what the trace put there is gone afterwards: a call of eager would stumble over it."""
    model = kind()
    assert_kept_alive(model, (torch.randn(1, 4, 3),), OTHERS, dynamic_shapes=PICTURE)
    for held in (*getattr(model, "cache", {}).values(), *OfTheClass.shared.values(), *GRIDS.values(), LATEST):
        assert held is None or type(held) is torch.Tensor


@pytest.mark.parametrize("kind", [ByPair, EarlyReturn, ByGet])
def test_a_cache_that_was_filled_before(kind):
    model = kind()
    for (x,) in OTHERS[:2]:
        model(x)
    assert_kept_alive(model, (torch.randn(1, 4, 3),), OTHERS, dynamic_shapes=PICTURE)
