"""However a command ends: never with exit code 0 and no verdict, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

MODELS = """
import os, signal, sys, time
import torch
from torch import nn

class Plain(nn.Module):
    def forward(self, x):
        return x * 2

class Exits(nn.Module):
    def forward(self, x):
        os._exit(0)

class ExitsLater(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_exporting() and x.abs().sum() == 0:
            os._exit(0)
        return x * 2

class Quits(nn.Module):
    def forward(self, x):
        sys.exit()

class Crashes(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSEGV)

class Waits(nn.Module):
    calls = 0
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1000, 1000)
    def forward(self, x):
        Waits.calls += 1
        if Waits.calls == 5:  # the check runs, with a copy of the model and a worker
            open("waiting", "w").close()
            time.sleep(600)
        return self.layer(x)

class AtTheEnd(nn.Module):
    def forward(self, x):
        import atexit
        atexit.register(os._exit, 0)
        return x.numpy()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def start(place: Path, name: str, size: str = "2x3", *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "trueport", "export", f"models.py:{name}", "-i", f"x:{size}", "-o", "net.onnx", *more],
        cwd=place,
        env={**os.environ, "TMPDIR": str(place / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_as_from_a_terminal,
    )


def _as_from_a_terminal() -> None:
    """The suite itself may be a job in the background, for which shells ignore Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def exported(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {"models.py", "tmp", "waiting", "__pycache__"}


def temporary(place: Path) -> list[str]:
    """Of ours. What a report of a bug needs stays, and onnxruntime has a file of its own there."""
    return [name for name in os.listdir(place / "tmp") if re.match("trueport-(?!bug)", name)]


def test_a_command_that_is_supervised_ends_as_ever(place: Path) -> None:
    command = start(place, "Plain")
    shown, _ = command.communicate()
    assert command.returncode == 0
    assert "faithful" in shown
    assert exported(place) == {"net.onnx", "net.onnx.proof.json"}
    assert not temporary(place)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Exits", "ended with exit code 0 before there was a verdict"),
        ("ExitsLater", "ended with exit code 0 before there was a verdict"),
        ("Quits", "SystemExit"),
        ("Crashes", "was ended by SIGSEGV before there was a verdict"),
        ("AtTheEnd", "TP"),
    ],
)
def test_no_exit_code_0_without_a_verdict(place: Path, name: str, said: str) -> None:
    command = start(place, name)
    shown = "".join(command.communicate())
    assert command.returncode == 1
    assert said in shown
    assert exported(place) == set()
    assert not temporary(place)


def waiting(place: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A command in the middle of its check, and all processes that it started."""
    command = start(place, "Waits", "Nx1000")
    while not (place / "waiting").exists():
        assert command.poll() is None, command.communicate()
        time.sleep(0.05)
    (place / "waiting").unlink()
    assert temporary(place)
    started = psutil.Process(command.pid).children(recursive=True)
    assert len(started) >= 2  # the command itself, and the runtime's worker
    return command, started


def all_gone(started: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(started, timeout=60)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cleans_up_as_ctrl_c_does(place: Path, number: signal.Signals) -> None:
    command, started = waiting(place)
    command.send_signal(number)
    command.communicate()
    assert command.returncode == 128 + number
    assert all_gone(started)
    assert exported(place) == set()
    assert not temporary(place)


def test_what_a_killed_command_started_ends_with_it_and_cleans_up(place: Path) -> None:
    command, started = waiting(place)
    command.kill()
    command.communicate()
    assert all_gone(started)
    assert not temporary(place)


def test_what_is_left_when_all_are_killed_the_next_run_removes(place: Path) -> None:
    command, started = waiting(place)
    for process in [*started, psutil.Process(command.pid)]:
        process.suspend()
    for process in [psutil.Process(command.pid), *started]:
        process.kill()
    command.communicate()
    assert all_gone(started)
    assert temporary(place)
    assert start(place, "Plain").wait() == 0
    assert not temporary(place)
