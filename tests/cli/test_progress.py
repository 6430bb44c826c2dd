"""Long work: what is told meanwhile, how long it may take, and what is found out before it begins."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import trueport
from trueport import progress
from trueport.cli import working as at_work
from trueport.cli.outcome import Exit

SLOW = """
import time
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        time.sleep({seconds})
        return x * 2
"""


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueport", *arguments],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **more},
    )  # fmt: skip


class TestWhatIsTold:
    def test_stages_inputs_and_bytes(self, tmp_path: Path) -> None:
        told: list[str] = []

        class Listening(progress.Reached):
            def __setattr__(self, name: str, value: object) -> None:
                super().__setattr__(name, value)
                if hasattr(self, "unit"):
                    told.append(str(self))

        model = torch.nn.Linear(1000, 500)
        with progress.heard_by(Listening()):
            trueport.export(model, (torch.ones(2, 1000),), tmp_path / "m.onnx")
        for stage in ("load", "examine", "capture", "lower", "verify", "write"):
            assert stage in told
        assert "verify, 2 inputs" in told
        assert "write, 0.0 of 2.0 MB" in told
        assert told[-1] == "write, 2.0 of 2.0 MB"

    def test_nobody_listens_in_python(self, capfd: pytest.CaptureFixture[str]) -> None:
        trueport.check(torch.nn.ReLU(), (torch.ones(2),))
        assert capfd.readouterr() == ("", "")

    def test_large_counts_are_readable(self) -> None:
        assert str(progress.Reached("write", 1_200_000_000, 3_400_000_000, "bytes")) == "write, 1.2 of 3.4 GB"
        assert str(progress.Reached("verify", 3, 12, "inputs")) == "verify, 3 of 12 inputs"

    @pytest.mark.parametrize("quiet", [False, True])
    def test_lines_where_there_is_no_terminal(self, monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
        shown = io.StringIO()
        monkeypatch.setattr(sys, "stderr", shown)
        monkeypatch.setattr(at_work, "_INTERVAL", 0.01)
        with at_work.working("exporting [red]net\x1b.py[/]", quiet):
            progress.stage("write")
            progress.count(1, 2, "inputs")
            until = time.monotonic() + 20
            while not quiet and not shown.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
        lines = shown.getvalue().splitlines()
        assert bool(lines) is not quiet
        assert all(line.startswith("exporting [red]net\\x1b.py[/]: write, 1 of 2 inputs (") for line in lines)


class TestTimeout:
    def test_a_command_that_takes_too_long_says_what_it_came_to(self, tmp_path: Path) -> None:
        (tmp_path / "slow.py").write_text(SLOW.format(seconds=600))
        done = run(tmp_path, "export", "slow.py:Net", "-i", "x:2x4", "-o", "m.onnx", "--timeout", "15")
        assert done.returncode == Exit.FINDINGS, done.stderr
        assert "error[TP007]: the command was to end within 15 s" in done.stdout
        assert {path.name for path in tmp_path.iterdir()} <= {"slow.py", "__pycache__"}

    @pytest.mark.parametrize("how", [(), ("--portable",)], ids=["edits", "portable"])
    def test_a_search_for_a_fix_ends_with_its_processes(self, tmp_path: Path, how: tuple[str, ...]) -> None:
        (tmp_path / "slow.py").write_text(SLOW.format(seconds=600))
        done = run(tmp_path, "fix", "slow.py:Net", "-i", "x:2x4", "--write", "--quiet", "--timeout", "15", *how)
        assert done.returncode == Exit.FINDINGS, done.stderr
        assert "error[TP007]: the command was to end within 15 s" in done.stdout
        assert done.stderr == ""
        assert (tmp_path / "slow.py").read_text() == SLOW.format(seconds=600)

    def test_one_that_does_not_is_not_disturbed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with at_work.working("doing nothing", timeout=600):
            pass

    def test_no_time_at_all_is_no_timeout(self, tmp_path: Path) -> None:
        assert run(tmp_path, "check", "m.py:Net", "--timeout", "0").returncode == Exit.USAGE


class TestBeforeTheWork:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["export", "m.py:Net", "-o", "missing/m.onnx"],
            ["export", "m.py:Net", "-o", "."],
            ["export", "m.py:Net", "-o", "there.onnx"],
            ["export", "m.py:Net", "-o", "/proc/m.onnx"],
            ["export", "m.py:Net", "-o", "m.onnx", "--report", "missing/r.html"],
            ["check", "m.py:Net", "--dim", "nonsense"],
            ["check", "m.py:Net", "--select", "XX"],
            ["check", "m.py:Net", "--rtol", "x"],
            ["check", "m.py:Net", "--nosuch"],
            ["check", "m.py:Net", "--timeout", "-1"],
            ["verify", "missing.onnx", "m.py:Net"],
            ["check", "nan.py:Net"],
            ["check"],
        ],
        ids=" ".join,
    )
    def test_usage_errors_answer_without_torch(self, tmp_path: Path, arguments: list[str]) -> None:
        (tmp_path / "there.onnx").touch()
        (tmp_path / "m.py").touch()
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('torch was imported')")
        paths = os.pathsep.join([str(tmp_path), *sys.path])
        done = run(tmp_path, *arguments, PYTHONPATH=paths)
        assert done.returncode == Exit.USAGE, done.stderr
        assert "torch was imported" not in done.stderr

    def test_a_disk_without_room_is_seen(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Asks(torch.nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                raise AssertionError("no work was to be done")

        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        with pytest.raises(trueport.UsageError, match="left, and the model needs"):
            trueport.export(Asks(100, 100), (torch.ones(2, 100),), tmp_path / "m.onnx")
