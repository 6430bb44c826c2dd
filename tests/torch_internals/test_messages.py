"""What is read from torch's errors, held against the errors that the installed torch raises."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trueport.torch_internals import messages


def raised(run) -> str:
    with pytest.raises(Exception) as caught:
        run()
    return str(caught.value)


@pytest.mark.parametrize(
    "run",
    [
        lambda: nn.Linear(3, 3)(torch.ones(2, 3, dtype=torch.float64)),
        lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.int64),
        lambda: nn.Conv1d(1, 1, 1)(torch.ones(1, 1, 2, dtype=torch.float64)),
        lambda: nn.Embedding(3, 2)(torch.ones(2)),
    ],
)
def test_dtypes(run):
    assert messages.is_about_dtypes(raised(run))
    assert not messages.is_about_indices("mat1 and mat2 shapes cannot be multiplied (2x7 and 8x3)")


@pytest.mark.parametrize(
    "run",
    [
        lambda: torch.ones(3)[torch.ones(2)],
        lambda: torch.ones(3).index_select(0, torch.ones(2)),
        lambda: torch.ones(3).gather(0, torch.ones(2)),
    ],
)
def test_indices(run):
    assert messages.is_about_indices(raised(run))


def test_sizes():
    assert messages.size_indexed(raised(lambda: torch.ones(5)[torch.tensor(9)])) == 5
    assert {7, 8} <= set(messages.numbers_named(raised(lambda: nn.Linear(8, 3)(torch.ones(2, 7)))))


def test_what_comes_after_the_matter():
    assert messages.first_paragraph("it failed\n\nadvice") == "it failed"
    assert messages.first_paragraph("it failed\nException raised from at::native") == "it failed"


def test_what_torch_load_refuses(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "whole.pt")
    told = messages.refused_by_load(raised(lambda: torch.load(tmp_path / "whole.pt", weights_only=True)))
    assert "torch.nn.modules.linear.Linear" in told
    assert "\n" not in told
