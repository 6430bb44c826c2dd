"""What is released: the wheel, built and installed, and a sample of the tour on it. `make tour` runs all of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import trueport
from examples.tour.__main__ import Command, journeys, missing, travel
from tests.release.installed import PROJECT, TRY, build, install, names_in

SAMPLE = (1, 7, 14)
"""Of each kind one: without torch, and a check. All of them would take minutes: `make tour`."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = build(tmp_path_factory.mktemp("dist"), "wheel")
    return built


@pytest.fixture(scope="module")
def binaries(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("venv"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = names_in(wheel)
    assert {name.split("/")[0] for name in names} == {"trueport", f"trueport-{trueport.__version__}.dist-info"}
    tracked = subprocess.run(
        ["git", "ls-files", "src/trueport"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if tracked.returncode == 0 and tracked.stdout:  # not in a copy without git
        assert {name.removeprefix("src/") for name in tracked.stdout.split()} <= names
    assert not any("__pycache__" in name for name in names)


def test_the_installed_wheel_is_whole(binaries: Path) -> None:
    done = subprocess.run([binaries / "python", "-I", "-c", TRY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/trueport/__init__.py"
    assert re.search(
        rf"^## .*{re.escape(trueport.__version__)}|{re.escape(trueport.__version__)}",
        (PROJECT / "CHANGELOG.md").read_text(),
    )


@pytest.mark.parametrize("number", SAMPLE)
def test_a_journey_on_the_installed_wheel(number: int, binaries: Path) -> None:
    journey = next(journey for journey in journeys() if journey.number == number)
    assert travel(journey, binaries) is None


def test_there_are_twenty_journeys_and_each_says_what_is_printed() -> None:
    assert [journey.number for journey in journeys()] == list(range(1, 21))
    for journey in journeys():
        assert any(command.prints for command in journey.commands)
        assert all(command.typed.startswith(("trueport ", "python ", "ls", "head ")) for command in journey.commands)


def test_a_line_that_is_not_printed_is_missed() -> None:
    command = Command("trueport", 0, ("one …three", "four"))
    assert missing(command, "one two three\nfour") is None
    assert missing(command, "four\none two three") == "four"
    assert missing(command, "one two\nfour") == "one …three"


def test_the_sample_runs_on_the_wheel_and_not_on_this_checkout(binaries: Path) -> None:
    """Whatever PYTHONPATH says here."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    command = [binaries / "python", "-I", "-c", "import trueport; print(trueport.__file__)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(binaries.parent))
    assert Path(sys.executable) != binaries / "python"
