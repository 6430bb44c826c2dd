"""Eager's own error, measured against float64, is allowed; a wrong translation is not hidden by it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from trueport.verify.judging.compare import Tolerance, tolerance_for
from trueport.verify.judging.yardstick import rejudged
from trueport.verify.runtime.tensors import from_torch

TOLERANCE = tolerance_for(torch.float32)


def rounded(noise: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The truth, eager's answer and another runtime's, both off by so much of it."""
    chance = torch.Generator().manual_seed(0)
    truth = torch.randn(1000, dtype=torch.float64, generator=chance)
    eager, runtime = (
        (truth + noise * torch.randn(1000, dtype=torch.float64, generator=chance)).float() for _ in range(2)
    )
    return truth, eager, runtime


def test_two_answers_that_are_about_as_far_from_the_truth_agree():
    truth, eager, runtime = rounded(noise=3e-5)
    again = rejudged([eager], [truth], [from_torch(runtime)], [TOLERANCE], [False])
    assert again.verdicts[0].difference is None
    assert 1e-4 < again.allowed[0] < 1e-3


def test_an_element_that_jumps_excuses_itself_alone():
    truth, eager, _ = rounded(noise=1e-7)
    eager[3] += 1
    on_the_other_side, elsewhere = eager.clone(), eager.clone()
    on_the_other_side[3] -= 1
    elsewhere[4] += 1
    right, wrong = (
        rejudged([eager], [truth], [from_torch(each)], [TOLERANCE], [False]) for each in (on_the_other_side, elsewhere)
    )
    assert right.verdicts[0].difference is None
    assert wrong.verdicts[0].difference is not None


def test_a_tolerance_of_the_users_own_is_not_widened():
    truth, eager, runtime = rounded(noise=3e-5)
    again = rejudged([eager], [truth], [from_torch(runtime)], [TOLERANCE], [True])
    assert again.verdicts[0].difference is not None


def test_a_fault_of_one_in_a_thousand_stays_a_fault():
    truth, eager, _ = rounded(noise=3e-5)
    again = rejudged([eager], [truth], [from_torch(eager * 1.001)], [TOLERANCE], [False])
    assert again.verdicts[0].difference is not None
    assert not again.excuse


def test_eager_that_is_no_yardstick_allows_nothing():
    truth, eager, runtime = rounded(noise=0.1)
    again = rejudged([eager], [truth], [from_torch(runtime)], [TOLERANCE], [False])
    assert again.verdicts[0].difference is not None


def test_where_eager_overflows_and_the_runtime_does_not_nobody_is_accused():
    x = torch.tensor([3e38, 1.0])
    truth = (x.double() * 2 - x.double()).float()
    again = rejudged([x * 2 - x], [truth.double()], [from_torch(truth)], [TOLERANCE], [False])
    assert again.verdicts[0].difference is not None
    assert again.excuse.startswith("eager itself is off")


class Deep(nn.Module):
    """Rounds a hundred times: batch norms that amplify, convolutions, a softmax at the end."""

    def __init__(self) -> None:
        super().__init__()
        block = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(16)]
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), *block)

    def forward(self, x):
        return self.body(x).softmax(1)


@pytest.fixture
def deep() -> nn.Module:
    torch.manual_seed(2)
    model = Deep().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7)
    return model


def test_a_deep_model_is_not_accused_of_rounding_and_the_report_says_what_was_allowed(deep, monkeypatch):
    # As if its own error were larger than what the dtype allows; which it is on some machines and not on others.
    narrow = Tolerance(1e-6, 0.0, 2e-7)
    monkeypatch.setattr("trueport.verify.judging.comparing.tolerance_for", lambda *_: narrow)
    report = trueport.check(deep, (torch.randn(1, 3, 24, 24),), seed=2)
    assert report.verified, report
    assert "eager's own rounding, measured against float64" in report.tolerances["output"]


def test_a_fault_of_one_in_a_thousand_in_a_deep_model_is_found(deep):
    wrong = {torch.ops.aten.relu.default: lambda op, x: op.Mul(op.Relu(x), 1.001)}
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(deep, (torch.randn(1, 3, 24, 24),), custom_translation_table=wrong)
    assert refused.value.diagnostics[0].code == "TP805"
