"""What is a tie, and what is another token."""

from __future__ import annotations

import pytest
import torch

import trueport
from trueport.generation.proof import GeneratedRun, Tie, tied_tokens
from trueport.verify.judging.compare import tolerance_for

FLOAT32 = tolerance_for(torch.float32)


def found(eager: list[float], runtime: list[float]) -> list[Tie]:
    ours, theirs = torch.tensor([eager]), torch.tensor([runtime])
    return list(tied_tokens((7,), 3, ours.argmax(-1), ours, theirs, FLOAT32))


def test_the_same_token_is_no_tie():
    assert found([1.0, 2.0, 3.0], [1.0, 2.0, 3.1]) == []


def test_two_that_are_equal_within_the_tolerance_are_named():
    (tie,) = found([1.0, 2.0, 2.000001], [1.0, 2.000001, 2.0])
    assert (tie.row, tie.step, tie.eager, tie.runtime) == (0, 3, 2, 1)
    run = GeneratedRun(1, (7,), 32, 1e-6, (tie,), ())
    assert "32 tokens equal but for 1 ties (row 0, token 3: 2 or 1, " in str(run)


def test_another_token_is_an_error():
    with pytest.raises(trueport.ExportError, match="prompt 7, row 0 of 1, token 3: eager chose 2") as refused:
        found([1.0, 2.0, 2.1], [1.0, 2.1, 2.0])
    assert [each.code for each in refused.value.diagnostics] == ["TP813"]
