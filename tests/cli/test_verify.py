"""`trueport verify`: files that other exporters wrote, right and wrong, and what is said of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from trueport.cli.main import main
from trueport.cli.outcome import Exit

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return {"y": x * 2, "rows": x.sum(1)}


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 50:
            return x * 3
        return -x


class Repeat(nn.Module):
    def forward(self, x, n):
        for _ in range(n):
            x = x + 1
        return x
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)


def model(name: str) -> torch.nn.Module:
    space: dict[str, object] = {}
    exec(compile(MODEL, "model.py", "exec"), space)
    return space[name]()  # type: ignore[operator]


def write(name: str, *args: object, **options: object) -> None:
    """As the older exporter of torch writes it: one path through the Python code, whatever it is."""
    torch.onnx.export(model(name).eval(), args, "net.onnx", dynamo=False, **options)


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", "net.onnx", *arguments])


def test_a_right_file_is_faithful_and_its_open_sizes_are_tried():
    write("Net", torch.rand(2, 3), input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    done = verify("model.py:Net", "-i", "x:2x3")
    assert done.exit_code == Exit.FAITHFUL, done.output
    assert done.stdout.startswith("faithful Net → net.onnx")
    assert "batch = 0, 1, 2" in done.stdout


@pytest.mark.filterwarnings("ignore:.*TracerWarning|.*Converting a tensor")
def test_a_frozen_branch_is_found_and_its_line_is_named():
    write("Branch", torch.rand(2, 3), input_names=["x"])
    done = verify("model.py:Branch", "-i", "x:2x3", "--output-format", "json")
    assert done.exit_code == Exit.FINDINGS, done.output
    found = next(one for one in json.loads(done.stdout)["diagnostics"] if one["severity"] == "error")
    assert found["code"] == "TP805"
    assert found["place"]["calls"][-1]["line"] == 12
    assert any("`x.sum() > 50` holds" in fact for fact in found["seen"])
    assert found["fix"] == "the file has one way of this line only; `trueport export` keeps all of them"
    script = next(fact for fact in found["seen"] if fact.startswith("to see it: python ")).split()[-1]
    assert script == "net.onnx.counterexample/show_difference.py"
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "eager" in shown.stdout


@pytest.mark.filterwarnings("ignore:.*TracerWarning|.*Converting a tensor")
def test_a_counterexample_goes_where_it_is_asked_for_and_in_python_nowhere_unasked(tmp_path):
    import trueport

    write("Branch", torch.rand(2, 3), input_names=["x"])
    before = set(tmp_path.iterdir())
    assert not trueport.verify("net.onnx", model("Branch"), (torch.rand(2, 3),)).ok
    assert set(tmp_path.iterdir()) == before
    assert verify("model.py:Branch", "-i", "x:2x3", "--counterexample", "shown/here").exit_code == Exit.FINDINGS
    assert {path.name for path in Path("shown/here").iterdir()} == {"counterexample.npz", "show_difference.py"}


@pytest.mark.filterwarnings("ignore")
def test_a_number_that_vanished_is_held_and_said_and_one_declared_free_is_wrong():
    import trueport

    write("Repeat", torch.rand(3), 4, input_names=["x"])
    held = trueport.verify("net.onnx", model("Repeat"), (torch.rand(3), 4))
    assert held.ok
    assert ["TP205"] == [found.code for found in held.warnings]
    assert "no input for the number `n`: it is fixed at 4" in held.warnings[0].message
    free = trueport.verify(
        "net.onnx", model("Repeat"), (torch.rand(3), 4), dynamic_shapes=(None, torch.export.Dim.DYNAMIC)
    )
    assert [found.code for found in free.errors] == ["TP805"]


def test_a_file_that_is_another_model():
    write("Net", torch.rand(2, 3))
    Path("model.py").write_text(MODEL.replace('{"y": x * 2, "rows": x.sum(1)}', "x * 2"))
    done = verify("model.py:Net", "-i", "x:2x3")
    assert done.exit_code == Exit.FINDINGS
    assert "the file has 2 outputs, eager returns 1" in done.stdout
    assert done.stdout.startswith("unfaithful net.onnx is not Net")


def test_a_file_that_is_not_there_is_a_fault_of_the_request():
    assert verify("model.py:Net", "-i", "x:2x3").exit_code == Exit.USAGE


def test_tolerances_for_all_outputs_or_for_one():
    write("Net", torch.rand(2, 3), input_names=["x"], output_names=["y", "rows"])
    Path("model.py").write_text(MODEL.replace("x * 2", "x * 2.001"))
    assert verify("model.py:Net", "-i", "x:2x3").exit_code == Exit.FINDINGS
    assert verify("model.py:Net", "-i", "x:2x3", "--rtol", "y=1e-2").exit_code == Exit.FAITHFUL
    assert verify("model.py:Net", "-i", "x:2x3", "--rtol", "rows=1e-2").exit_code == Exit.FINDINGS
    assert verify("model.py:Net", "-i", "x:2x3", "--rtol", "much").exit_code == Exit.USAGE
    nobody = verify("model.py:Net", "-i", "x:2x3", "--atol", "z=1e-2")
    assert nobody.exit_code == Exit.USAGE
    assert "atol names `z`, which is no output of the model" in nobody.output
