"""Normalisations whose mean and deviation the model uses as well."""

from __future__ import annotations

import torch

from tests.lower.ops.faithful import faithful, operators


def test_layers_and_groups():
    def forward(x):
        return torch.native_layer_norm(x, [4], None, None, 1e-5), torch.native_group_norm(
            x, None, None, 2, 6, 4, 3, 1e-5
        )

    faithful(forward, torch.randn(2, 6, 4))


def test_a_batch_with_its_running_averages():
    def forward(x, mean, variance):
        return torch.ops.aten._native_batch_norm_legit_functional(x, None, None, mean, variance, True, 0.1, 1e-5)

    faithful(forward, torch.randn(4, 3, 5), torch.zeros(3), torch.ones(3))


def test_nothing_is_computed_that_nobody_reads():
    program = faithful(lambda x: torch.native_layer_norm(x, [4], None, None, 1e-5)[0], torch.randn(2, 4))
    assert "ReduceMean" not in operators(program)
