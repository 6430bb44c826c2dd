"""Inputs on which eager reads beyond the end of a tensor are no tests of a model."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import trueport
from tests.lower.through_onnx import graph_of
from trueport.verify.unchecked import ReadsBeyond, with_indices_checked


def losses(log_probs, targets):
    return F.ctc_loss(log_probs, targets, [6, 6], [2, 3], reduction="none")


def inputs(classes: int = 7):
    targets = torch.tensor([[1, 6, -1], [2, 5, 3]])  # the -1 is behind the end of the first text
    return torch.randn(6, 2, classes).log_softmax(-1), targets


def run_checked(*given):
    graph = graph_of(losses, inputs())
    run = with_indices_checked(
        lambda values: losses(*values), graph, lambda values: dict(zip(("log_probs", "targets"), values, strict=True))
    )
    return run(given)


def test_labels_beyond_the_alphabet_are_refused_where_they_count():
    log_probs, targets = inputs()
    torch.testing.assert_close(run_checked(log_probs, targets), losses(log_probs, targets))
    with pytest.raises(ReadsBeyond):
        run_checked(log_probs, targets + 1)


def test_an_alphabet_of_free_size():
    program = trueport.export(losses, inputs(), dynamic_shapes=({2: torch.export.Dim("classes", min=7)}, None))
    others = inputs(11)
    torch.testing.assert_close(program(*others), losses(*others), rtol=1e-4, atol=1e-4)


def test_pivots_within_the_matrix():
    def forward(a, b):
        lu, pivots = torch.linalg.lu_factor(a)
        return torch.linalg.lu_solve(lu, pivots, b)

    square = {0: torch.export.Dim("n"), 1: torch.export.Dim("n")}
    a, b = torch.randn(4, 4) + 5 * torch.eye(4), torch.randn(4, 2)
    trueport.export(forward, (a, b), dynamic_shapes=(square, {0: square[0]}))
