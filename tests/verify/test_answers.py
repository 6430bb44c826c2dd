"""What eager gave before an edit, to be held against what it gives after it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trueport.load.request import make_job
from trueport.verify.answers import answers, kept


class Noisy(nn.Module):
    def forward(self, x):
        return x + 0.01 * torch.randn_like(x)


class Double(nn.Module):
    def forward(self, x):
        return x * 2


@pytest.mark.parametrize(("model", "known"), [(Noisy(), False), (Double(), True)], ids=["noisy", "plain"])
def test_an_answer_that_is_made_by_chance_is_none(model, known):
    """Beside large values the noise is within the tolerance in two runs, and not in the third, after an edit."""
    job = make_job(model, (torch.ones(2, 4),), dynamic_shapes={"x": {0: "n"}})
    before = answers(job, [])
    values = [answer for answer in before.given if all(leaf.numel() for leaf in answer.leaves)]
    assert bool(values) is known
    assert not kept(job, before).different
