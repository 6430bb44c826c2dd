"""The two commands on real files, through every room, as a user types them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

from trueport.cli.main import main
from trueport.cli.outcome import Exit

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return {"y": self.fc(x)}


class Frozen(nn.Module):
    def forward(self, x):
        return x.view(5, 8)
"""


@pytest.fixture(autouse=True)
def model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)


def trueport(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_export_writes_a_checked_model_with_a_free_size(tmp_path: Path) -> None:
    done = trueport("export", "model.py:Net", "-i", "x:Bx3", "-o", "net.onnx")
    assert done.exit_code == Exit.FAITHFUL, done.output
    assert done.stdout.startswith("faithful Net → net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    assert [axis.dim_param or axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim] == ["B", 3]
    assert [output.name for output in model.graph.output] == ["y"]


def test_an_existing_file_is_replaced_only_on_request() -> None:
    Path("net.onnx").write_bytes(b"precious")
    assert trueport("export", "model.py:Net", "-i", "x:Bx3", "-o", "net.onnx").exit_code == Exit.USAGE
    assert Path("net.onnx").read_bytes() == b"precious"
    assert trueport("export", "model.py:Net", "-i", "x:Bx3", "-o", "net.onnx", "--overwrite").exit_code == Exit.FAITHFUL
    assert onnx.load("net.onnx").graph.node


def test_a_frozen_size_is_refused_at_its_line_and_nothing_is_written() -> None:
    done = trueport("export", "model.py:Frozen", "-i", "x:Bx8", "--dim", "B=5..9", "-o", "net.onnx")
    assert done.exit_code == Exit.FINDINGS, done.output
    assert "error[TP301]" in done.stdout
    assert "--> model.py:16:16 in Frozen.forward" in done.stdout
    assert not Path("net.onnx").exists()


def test_check_writes_nothing() -> None:
    before = set(Path.cwd().iterdir())
    done = trueport("check", "model.py:Net", "-i", "x:2x3", "--report", "report.html")
    assert done.exit_code == Exit.FAITHFUL, done.output
    written = {path.name for path in set(Path.cwd().iterdir()) - before}
    assert written - {"__pycache__"} == {"report.html"}


@pytest.mark.parametrize(
    "arguments",
    [["model.py:Nett", "-i", "x:2x3"], ["nan.py:Net", "-i", "x:2x3"], ["model.py:Net", "-i", "z:2x3"]],
    ids=["unknown class", "missing file", "unknown input"],
)
def test_a_request_that_makes_no_sense_is_told_with_a_code(arguments: list[str]) -> None:
    done = trueport("check", *arguments)
    assert done.exit_code == Exit.USAGE, done.output
    assert "error[TP001]" in done.stderr
