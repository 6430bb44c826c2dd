"""Bags of embeddings of any number and length, empty ones included."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful

WEIGHT = torch.randn(10, 4)
MODES = ("sum", "mean", "max")


@pytest.mark.parametrize("mode", MODES)
def test_bags_by_offsets(mode):
    def forward(ids):
        # Offsets are made here: eager reads whatever memory wrong ones point at. The first and the last bag are empty.
        n = ids.shape[0]
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.arange(0, n, 3), torch.full((1,), n)])
        return F.embedding_bag(ids, WEIGHT, offsets, mode=mode)

    faithful(forward, torch.tensor([0, 7, 7, 2, 5]), free=({0},))


@pytest.mark.parametrize("mode", MODES)
def test_bags_of_one_length(mode):
    faithful(nn.EmbeddingBag(10, 4, mode=mode), torch.randint(0, 10, (3, 5)), free=({0, 1},))


@pytest.mark.parametrize("mode", MODES)
def test_padding_is_left_out(mode):
    model = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=-3)
    program = faithful(model, torch.randint(0, 10, (3, 5)), free=({0},))
    only_padding = torch.tensor([[7, 7, 7, 7, 7], [7, 1, 7, 7, 2]])
    torch.testing.assert_close(program(only_padding), model(only_padding))


def test_the_last_offset_may_be_the_end():
    model = nn.EmbeddingBag(10, 4, mode="sum", include_last_offset=True)
    faithful(lambda ids: model(ids, torch.tensor([0, 1, 1, 4])), torch.tensor([1, 2, 4, 5]))


def test_weights_per_index():
    model = nn.EmbeddingBag(10, 4, mode="sum")

    def forward(ids, weights):
        return model(ids, per_sample_weights=weights)

    faithful(forward, torch.randint(0, 10, (3, 5)), torch.rand(3, 5), free=({0}, {0}))


@pytest.mark.parametrize("mode", MODES)
def test_in_half_precision_with_small_integers(mode):
    model = nn.EmbeddingBag(10, 4, mode=mode).half()
    faithful(model, torch.randint(0, 10, (3, 5), dtype=torch.int32), free=({0},))


def test_one_hot():
    faithful(lambda x: F.one_hot(x, 5), torch.tensor([[0, 4], [2, 2]]), free=({0, 1},))
