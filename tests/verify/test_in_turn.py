"""Files of models that remember their calls, or draw random numbers: what shows that they are wrong, or right."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import trueport
from tests.verify.onnx_models import scaled
from trueport.verify.faults.evidence import DATA, SCRIPT

X = torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 2.0]])


class Smoothed(nn.Module):
    """Answers by the mean of what it was given before."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.mean.mul_(0.5).add_(0.5 * x.mean(0))
        return x - self.mean


class Counted(nn.Module):
    """Twice its input at the first call, three times at the second."""

    def __init__(self):
        super().__init__()
        self.calls = 1

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Noisy(nn.Module):
    def forward(self, x):
        return 2 * x + 0.1 * torch.randn_like(x)


def test_a_file_without_memory_is_shown_by_two_calls(tmp_path):
    path = scaled(tmp_path / "m.onnx", 2.0)
    model = Counted().eval()
    (found,) = trueport.verify(path, model, (X,), counterexample=tmp_path / "shown").errors
    assert (found.code, model.calls) == ("TP203", 1)
    assert "call 2 differs" in found.message
    assert "`calls`" in found.message
    saved = np.load(tmp_path / "shown" / DATA)
    assert [saved[f"{call}.in.x"].tolist() for call in (0, 1)] == [X.tolist()] * 2
    assert saved["1.eager.y"].tolist() == (3 * X).tolist()
    ran = subprocess.run([sys.executable, tmp_path / "shown" / SCRIPT], capture_output=True, text=True, check=True)
    first, second = ran.stdout.split("call 2: y")
    assert first.count("[2., 4., 8.]") == 2
    assert second.count("[2., 4., 8.]") == 1
    assert " 12.]" in second


def test_it_is_faithful_where_each_call_is_meant_to_begin_anew(tmp_path):
    report = trueport.verify(scaled(tmp_path / "m.onnx", 2.0), Counted().eval(), (X,), state="frozen")
    assert report.ok
    assert report.verified


def test_a_file_that_is_wrong_at_once_needs_no_second_call(tmp_path):
    (found,) = trueport.verify(scaled(tmp_path / "m.onnx", 5.0), Counted().eval(), (X,)).errors
    assert found.code == "TP805"


def test_a_file_with_its_state_as_inputs_and_outputs_is_fed_what_it_gave(tmp_path):
    path = tmp_path / "m.onnx"
    trueport.export(Smoothed().eval(), (X,), path, state="inputs-outputs")
    report = trueport.verify(path, Smoothed().eval(), (X,))
    assert report.ok, report
    assert {"2 calls in turn", "6 calls in turn"} <= {check.family for check in report.checks}


class Forgetful(Smoothed):
    """Forgets faster, which one call alone does not show: the first begins with nothing."""

    def forward(self, x):
        self.mean.mul_(0.25).add_(0.5 * x.mean(0))
        return x - self.mean


def test_a_state_that_goes_another_way_is_found(tmp_path):
    path = tmp_path / "m.onnx"
    trueport.export(Forgetful().eval(), (X,), path, state="inputs-outputs")
    (found,) = trueport.verify(path, Smoothed().eval(), (X,)).errors
    assert found.code == "TP203"
    assert "what the file makes of it is another" in found.message


def test_a_file_that_draws_as_eager_does_is_faithful(tmp_path):
    path = tmp_path / "m.onnx"
    trueport.export(Noisy().eval(), (X,), path, random="onnx")
    report = trueport.verify(path, Noisy().eval(), (X,))
    assert report.ok, report
    assert [finding.code for finding in report.diagnostics] == ["TP004"]


def test_a_file_that_draws_nothing_is_shown_by_several_calls(tmp_path):
    path = scaled(tmp_path / "m.onnx", 2.0)
    (found,) = trueport.verify(path, Noisy().eval(), (X,), counterexample=tmp_path / "shown").errors
    assert found.code == "TP811"
    assert any("the file gives the same in all" in fact and "eager that in none" in fact for fact in found.seen)
    saved = np.load(tmp_path / "shown" / DATA)
    answers = {saved[name].tobytes() for name in saved.files if name.endswith("eager.y")}
    assert len(answers) == 5
    assert (tmp_path / "shown" / SCRIPT).is_file()


@pytest.mark.parametrize("model", [Counted, Noisy], ids=lambda model: model.__name__)
def test_nothing_is_kept_where_nobody_asked(model, tmp_path):
    path = scaled(tmp_path / "m.onnx", 2.0)
    trueport.verify(path, model().eval(), (X,))
    assert [each.name for each in tmp_path.iterdir()] == ["m.onnx"]
