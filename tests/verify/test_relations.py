"""A relation between free sizes that the trace found: told where the model needs it, tried where only torch does."""

from __future__ import annotations

import pytest
import torch

import trueport
from trueport.decompositions.registry import SIZES, discover

FREE = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)


def spread(z):
    return torch.var_mean(z)


@pytest.fixture
def as_torch_says(monkeypatch):
    """Without our own answer, torch makes a plain number of how many complex numbers there are."""
    discover()
    for form in (torch.ops.aten.var_mean.default, torch.ops.aten.var_mean.correction):
        monkeypatch.delitem(SIZES, form)


def test_what_eager_does_not_need_is_tried(as_torch_says):
    report = trueport.check(spread, (torch.randn(4, 5, dtype=torch.complex64),), dynamic_shapes=FREE)
    assert report.ok
    assert "TP303" not in {found.code for found in report.diagnostics}
    assert len({tuple(tried.sizes.values()) for tried in report.checks}) > 5


def test_what_eager_needs_is_told():
    report = trueport.check(lambda x: x.view(20) + 1, (torch.randn(4, 5),), dynamic_shapes=FREE)
    assert [found.code for found in report.diagnostics] == ["TP303"]
