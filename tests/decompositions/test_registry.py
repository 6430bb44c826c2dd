"""What is called instead of torch's own is registered once, and asked where it is needed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trueport.decompositions import registry
from trueport.decompositions.registry import (
    always,
    decomposes,
    decompositions_of,
    layers_decomposed,
    operator_decomposition,
    sizes_of,
)

aten = torch.ops.aten


@pytest.fixture
def forgotten(monkeypatch):
    """What a test registers is forgotten after it."""
    registry.discover()
    monkeypatch.setattr(registry, "_DECOMPOSITIONS", {name: [*each] for name, each in registry._DECOMPOSITIONS.items()})
    monkeypatch.setattr(registry, "SIZES", dict(registry.SIZES))


def test_twice_is_a_mistake(forgotten):
    with pytest.raises(AssertionError, match="decomposed twice"):
        decomposes(aten.mode.default)(lambda x: x)
    with pytest.raises(AssertionError, match="told twice"):
        sizes_of(aten.topk.default)(lambda x: x)


def test_what_is_always_asked_is_asked_last(forgotten):
    def last(x):
        return x

    def first(x):
        return x

    decomposes(torch.relu, when=always)(last)
    decomposes(torch.relu)(first)
    assert [found.function for found in decompositions_of(torch.relu)] == [first, last]


def test_views_are_told_from_copies_only_where_something_is_written():
    assert operator_decomposition(aten.unbind.int, careful=True) is not None
    assert operator_decomposition(aten.unbind.int, careful=False) is None
    assert operator_decomposition(aten.squeeze.default, careful=False) is not None


def test_a_tensor_of_one_value_is_a_number_where_numbers_are_taken():
    (found,) = decompositions_of(torch.linspace)
    assert found.given((0, torch.tensor(1.5)), {"steps": torch.tensor(3)}) == ((0, 1.5), {"steps": 3})


class Own(nn.LSTM):
    def forward(self, input, hx=None):
        return input


def test_a_layer_with_a_forward_of_its_own_keeps_it():
    model = nn.ModuleList([nn.LSTM(2, 2), Own(2, 2)])
    with layers_decomposed(model):
        assert ["forward" in vars(layer) for layer in model] == [True, False]
    assert not any("forward" in vars(layer) for layer in model)
