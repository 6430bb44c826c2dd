"""`trueport fix` from outside: what is printed where, what is written, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trueport.cli import fix as command
from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.cli.trial import Nursery, trials
from trueport.fix.command import Command

HELPER = "def scale(x):\n    return x * 2\n"
MODEL = """\
import numpy as np
import torch
from torch import nn

from helper import scale


class Net(nn.Module):
    def forward(self, x):
        return scale(x) * torch.from_numpy(np.tanh(x.numpy()))  # squashed
"""
MENDED = MODEL.replace("torch.from_numpy(np.tanh(x.numpy()))", "torch.tanh(x)")

CUSTOM = """\
import torch


@torch.library.custom_op("fixcli::own", mutates_args=())
def own(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@own.register_fake
def _(x):
    return torch.empty_like(x)
"""
"""An operator that nobody can translate but its author."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    home = Nursery()
    yield home
    home.close()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: Nursery) -> Path:
    """A model with a neighbour that it imports; trials come from the process that all tests of this file share."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "trials", lambda: trials(nursery))
    Path("helper.py").write_text(HELPER)
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def fix(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fix", *arguments])


def test_the_diff_is_on_stdout_and_the_words_are_not(model: Path) -> None:
    shown = fix("model.py:Net", "-i", "x:Nx4")
    assert shown.exit_code == Exit.FINDINGS, shown.output
    assert shown.stdout.startswith("--- a/model.py\n+++ b/model.py\n@@ ")
    changed = [line for line in shown.stdout.splitlines()[2:] if line[:1] in "+-"]
    assert changed == [
        "-        return scale(x) * torch.from_numpy(np.tanh(x.numpy()))  # squashed",
        "+        return scale(x) * torch.tanh(x)  # squashed",
    ]
    assert "TP204 model.py:10: stay in torch, without numpy" in shown.stderr
    assert "equal to eager on" in shown.stderr and "eager gives what it gave before on" in shown.stderr
    assert "to apply it: trueport fix model.py:Net -i x:Nx4 --write" in shown.stderr
    assert model.read_text() == MODEL


def test_write_mends_the_file_and_then_there_is_nothing_to_fix(model: Path) -> None:
    written = fix("model.py:Net", "-i", "x:Nx4", "--write")
    assert (written.exit_code, written.stdout) == (Exit.FAITHFUL, ""), written.output
    assert "written: model.py" in written.stderr
    assert model.read_text() == MENDED
    again = fix("model.py:Net", "-i", "x:Nx4", "--write")
    assert again.exit_code == Exit.FAITHFUL
    assert again.stdout.startswith("nothing to fix: it exports")
    assert not list(model.parent.glob(".*"))


def test_a_helper_is_mended_where_the_fault_is(model: Path) -> None:
    model.write_text(MENDED)
    Path("helper.py").write_text(
        "import numpy as np\nimport torch\n\n\ndef scale(x):\n    return x * torch.from_numpy(np.tanh(x.numpy()))\n"
    )
    shown = fix("model.py:Net", "-i", "x:Nx4")
    assert shown.stdout.startswith("--- a/helper.py\n"), shown.output
    assert "+    return x * torch.tanh(x)\n" in shown.stdout


def test_what_has_no_fix_is_told_and_left_alone(model: Path) -> None:
    model.write_text(f"{CUSTOM}\n\n{MODEL.replace('torch.from_numpy(np.tanh(x.numpy()))', 'own(x)')}")
    shown = fix("model.py:Net", "-i", "x:Nx4", "--write")
    assert shown.exit_code == Exit.FINDINGS, shown.output
    assert "error[TP401]" in shown.stdout
    assert "no known edit fits this line" in shown.stdout
    assert "own(x)" in model.read_text()


def test_a_way_out_by_another_command_is_printed_as_one(model: Path) -> None:
    model.write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x, axis):\n        return x.sum(axis)\n"
    )
    shown = fix("model.py:Net", "-i", "x:Nx4", "-i", "axis=1", "--write")
    assert (shown.exit_code, shown.stdout) == (Exit.FINDINGS, "")
    assert "trueport export model.py:Net -i x:Nx4 -i axis=1 --constants axis -o model.onnx" in shown.stderr


def test_a_file_that_changed_meanwhile_is_left_alone(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = command.write_changes

    def write_late(changes: object) -> object:
        model.write_text("# mine\n")
        return write(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "write_changes", write_late)
    shown = fix("model.py:Net", "-i", "x:Nx4", "--write")
    assert shown.exit_code == Exit.USAGE
    assert "was changed while the fix was tried" in shown.stderr
    assert model.read_text() == "# mine\n"


@pytest.mark.parametrize(
    "arguments", [["model.py:Nett", "-i", "x:Nx4"], ["nan.py:Net"], ["model.py:Net", "--dim", "N"]]
)
def test_faults_of_the_request(model: Path, arguments: list[str]) -> None:
    shown = fix(*arguments)
    assert shown.exit_code == Exit.USAGE
    assert "error[TP001]" in shown.stderr


def test_a_command_is_told_as_it_can_be_typed() -> None:
    typed = Command(
        "my model.py:Net", ("x:Nx4",), ("N=1..8",), options={"thorough": True, "seed": 0, "rtol": ("1e-3",)}
    )
    assert typed.text("export") == "trueport export 'my model.py:Net' -i x:Nx4 --dim N=1..8 --thorough --rtol 1e-3"
    assert typed.with_range("N", 2, None).dims == ("N=2..",)
    assert typed.with_fixed_size("N", 4) == Command("my model.py:Net", ("x:4x4",), (), typed.options)
    others = Command("m.py:Net", ("N:NxNN:f16@0..9", "NxH", "y=@N.npy"))
    assert others.with_fixed_size("N", 4).inputs == ("N:4xNN:f16@0..9", "4xH", "y=@N.npy")
    assert typed.with_constant("axis").with_constant("axis").given("constants") == "axis"


def test_check_mentions_the_command_where_a_fix_may_help(model: Path) -> None:
    shown = CliRunner().invoke(main, ["check", "model.py:Net", "-i", "x:Nx4"])
    assert "`trueport fix` with the same arguments" in shown.stderr
