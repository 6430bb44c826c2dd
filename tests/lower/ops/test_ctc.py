"""`ctc_loss` as a loop over time."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful

SPOKEN, WRITTEN = torch.tensor([9, 7, 9]), torch.tensor([4, 2, 0])


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_texts_in_rows_and_one_after_the_other(reduction):
    rows = torch.tensor([[1, 1, 2, 3], [4, 4, 0, 0], [0, 0, 0, 0]])
    joined = torch.tensor([1, 1, 2, 3, 4, 4])

    def forward(x):
        x = x.log_softmax(-1)
        options = {"reduction": reduction, "zero_infinity": True}
        return F.ctc_loss(x, rows, SPOKEN, WRITTEN, **options), F.ctc_loss(x, joined, SPOKEN, WRITTEN, **options)

    faithful(forward, torch.randn(9, 3, 5))


def test_any_time_and_any_batch():
    def forward(x, texts, spoken, written):
        return F.ctc_loss(x.log_softmax(-1), texts, spoken, written, blank=2, reduction="none")

    texts = torch.tensor([[0, 1, 3, 3], [4, 0, 1, 1]])
    lengths = torch.tensor([8, 9]), torch.tensor([4, 2])
    faithful(forward, torch.randn(9, 2, 5), texts, *lengths, free=({0, 1}, {0, 1}, {0}, {0}))
