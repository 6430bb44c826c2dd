"""A relation between free sizes that the trace found: told where the model needs it, tried where only torch does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from trueport import run
from trueport.decompositions.registry import SIZES, discover
from trueport.examine.run import run_eager

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


def test_a_line_that_refuses_sizes_is_asked_once_for_each(monkeypatch):
    """Three draws for the first sizes; where those all end at one line, one draw for the next that end there."""
    asked = []

    def noting(job, values, **more):
        asked.append(tuple(values[0].shape))
        return run_eager(job, values, **more)

    monkeypatch.setattr(run, "run_eager", noting)
    convolutions = nn.Sequential(nn.Conv2d(1, 2, 5), nn.Conv2d(2, 1, 3)).eval()
    free = ({2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC},)
    assert trueport.check(convolutions, (torch.randn(1, 1, 9, 9),), dynamic_shapes=free).ok
    counts = sorted(asked.count(shape) for shape in set(asked))
    assert len(counts) > 3, "sizes that are too small for a kernel are asked about"
    assert sum(count > 1 for count in counts) <= 2, "once for each of the two layers"
