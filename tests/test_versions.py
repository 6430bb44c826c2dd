"""Installed packages that do not work together are named before anything fails far from the cause."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from trueport.diagnostics import Diagnostic
from trueport.versions import NEEDED, judge_versions

GOOD = {
    "torch": "2.13.0+cpu",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "onnxruntime": "1.31.1",
    "numpy": "2.4.6",
}


def found(broken: Sequence[str] = (), **changed: str | None) -> list[Diagnostic]:
    versions = GOOD | {name.replace("_", "-"): version for name, version in changed.items()}
    return list(judge_versions(versions.get, lambda: broken))


def test_what_is_needed_is_what_pyproject_says() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    declared = {requirement.name: requirement.specifier for requirement in map(Requirement, project["dependencies"])}
    assert {name: Requirement(f"{name}{wanted}").specifier for name, wanted in NEEDED.items()} == {
        name: declared[name] for name in NEEDED
    }


def test_the_tested_set_is_in_order() -> None:
    assert found() == []


def test_a_package_that_is_too_old_is_an_error_with_the_command_that_mends_it() -> None:
    (one,) = found(onnx="1.15.0")
    assert (one.code, one.is_error) == ("TP602", True)
    assert one.message == "onnx 1.15.0 is older than what trueport needs (>=1.20)"
    assert one.fix == 'pip install "onnx>=1.20"'


def test_a_torch_that_is_newer_than_what_was_tried_is_a_warning_if_the_canary_lives() -> None:
    (one,) = found(torch="2.99.0")
    assert (one.code, one.is_error) == ("TP603", False)
    assert f"newer than what was tried ({NEEDED['torch']})" in one.message


def test_and_an_error_that_names_what_moved_if_not() -> None:
    (one,) = found(["torch._sync is missing"], torch="2.99.0")
    assert (one.code, one.is_error, one.seen) == ("TP603", True, ("torch._sync is missing",))


def test_the_canary_is_not_asked_about_a_torch_that_was_tried() -> None:
    def asked() -> Sequence[str]:
        raise AssertionError("asked")

    assert judge_versions(GOOD.get, asked) == ()


@pytest.mark.parametrize("version", ["2.13.1", "2.13.0rc3", "2.13.0a0+git"])
def test_builds_of_the_right_release_are_welcome(version: str) -> None:
    assert not [one for one in found(torch=version) if one.is_error]


def test_a_known_bad_pair_says_why() -> None:
    messages = [one.message for one in found(onnxruntime="1.18.0")]
    assert any("built for numpy 1" in message for message in messages)


def test_two_runtimes_in_one_folder() -> None:
    (one,) = found(onnxruntime_gpu="1.31.1")
    assert "onnxruntime and onnxruntime-gpu" in one.message
    assert not one.is_error


def test_another_build_of_the_runtime_counts_as_the_runtime() -> None:
    assert found(onnxruntime=None, onnxruntime_gpu="1.31.1") == []
    (old,) = found(onnxruntime=None, onnxruntime_gpu="1.20.0")
    assert old.is_error


def with_torch(version: str, program: str) -> subprocess.CompletedProcess[str]:
    """A program in a process where this release of torch is said to be installed, and torch has no private names."""
    said = (
        "import importlib.metadata, sys, torch\n"
        "real = importlib.metadata.version\n"
        f"importlib.metadata.version = lambda name: {version!r} if name == 'torch' else real(name)\n"
        "sys.modules['torch._subclasses.fake_tensor'] = None\n"
    )
    return subprocess.run([sys.executable, "-c", said + program], capture_output=True, text=True, check=False)


COMMAND = "from trueport.cli.main import main; main({!r})"


@pytest.mark.parametrize(
    "program",
    [
        COMMAND.format(["export", "torch.nn:Tanh", "--input", "float32[2]", "-o", "never.onnx"]),
        COMMAND.format(["check", "torch.nn:Tanh", "--input", "float32[2]"]),
        "import trueport; trueport.export",
        "from trueport.lower.table import op",
    ],
)
def test_an_old_torch_is_refused_before_anything_private_is_imported(program: str) -> None:
    done = with_torch("2.1.0", program)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "TP602" in line]
    assert f"error[TP602]: torch 2.1.0 is older than what trueport needs ({NEEDED['torch']})" in lines[0]
    assert "TP901" not in done.stderr and "fake_tensor" not in done.stderr


def test_the_doctor_says_it_too() -> None:
    done = with_torch("2.1.0", COMMAND.format(["doctor"]))
    assert done.returncode == 1
    assert "2.1.0  (needs" in done.stdout and "error[TP602]: torch 2.1.0" in done.stdout
    assert "moved  torch._dynamo.eval_frame.OptimizedModule is missing" in done.stdout  # it imports what is gone
    assert "moved  modes_are_of_one_thread: " in done.stdout  # the last one, too


def test_a_newer_torch_in_which_something_moved_is_refused_in_one_line() -> None:
    done = with_torch("2.99.0", COMMAND.format(["check", "torch.nn:Tanh", "--input", "float32[2]"]))
    assert done.returncode == 2
    assert "error[TP603]: torch 2.99.0 is newer than what was tried" in done.stderr
    assert "of the things that trueport relies on moved" in done.stderr and " is missing" in done.stderr
    assert "TP901" not in done.stderr
