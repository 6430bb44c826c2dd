"""A difference is told once for its cause, and the cause in words that lead to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

import trueport
from trueport.cli.main import main
from trueport.cli.outcome import Exit

MODEL = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 2)

    def forward(self, x):
        h = self.first(x)
        y = self.second(h)
        return h, y, y.sum(-1)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def net() -> torch.nn.Module:
    namespace: dict[str, Any] = {}
    exec(compile(MODEL, "model.py", "exec"), namespace)
    torch.manual_seed(0)
    made: torch.nn.Module = namespace["Net"]().eval()
    return made


class TestFreshWeights:
    """`trueport verify net.onnx model.py:Net` without `--weights`: the most common mistake with it."""

    @pytest.fixture(autouse=True)
    def files(self) -> None:
        Path("model.py").write_text(MODEL)
        torch.save(net().state_dict(), "weights.pt")
        torch.onnx.export(net(), (torch.rand(3, 4),), "net.onnx", verbose=False)

    def test_are_told_once_with_the_flag_that_is_missing(self) -> None:
        torch.manual_seed(7)
        shown = CliRunner().invoke(main, ["verify", "net.onnx", "model.py:Net", "-i", "x:3x4", "-q"])
        assert shown.exit_code == Exit.FINDINGS
        assert shown.stdout.count("error[") == 1, shown.stdout
        assert "none of the model's 4 weights is in the file" in shown.stdout
        assert "--weights FILE" in shown.stdout

    def test_the_flag_mends_it(self) -> None:
        arguments = ["verify", "net.onnx", "model.py:Net", "-i", "x:3x4", "-q", "--weights", "weights.pt"]
        shown = CliRunner().invoke(main, arguments)
        assert shown.exit_code == Exit.FAITHFUL, shown.output

    def test_one_weight_that_is_the_models_says_that_the_others_are_meant(self) -> None:
        model = net()
        with torch.no_grad():
            model.get_parameter("second.weight").mul_(2)
        (found,) = trueport.verify("net.onnx", model, (torch.rand(3, 4),)).errors
        assert not any("weights is in the file" in fact for fact in found.seen)
        assert "load_state_dict" not in found.fix


class AsksWhetherItIsExported(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2 if torch.compiler.is_exporting() else x * 3
        return y, y + 1


def test_a_model_that_computes_something_else_when_it_is_exported() -> None:
    (found,) = trueport.check(AsksWhetherItIsExported(), (torch.ones(3),)).errors
    assert found.code == "TP805"
    assert any("where torch.compiler.is_exporting() is True" in fact for fact in found.seen)
    assert any(fact.startswith("also: output `output_1` differs") for fact in found.seen)
    assert "look for is_exporting()" in found.fix
    assert "translation" not in found.fix


class Selects(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x > 0], x[x > 0] * 2


def test_a_length_that_only_a_run_tells_is_named_after_its_output() -> None:
    report = trueport.check(Selects(), (torch.tensor([1.0, -1.0, 2.0]),), verify=False)
    assert [tensor.shape for tensor in report.outputs] == [("output_0_dim0",), ("output_1_dim0",)]
