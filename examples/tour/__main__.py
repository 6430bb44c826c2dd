"""`make tour`: runs the journeys of tour.md on an installed trueport, and looks for what they must print.

python -m examples.tour BIN [NUMBER...]     # BIN is the folder that `trueport` and `python` are taken from
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Command:
    """A line that is typed, the code that it must end with, and the lines that it must print, in order."""

    typed: str
    ends_with: int
    prints: tuple[str, ...]


@dataclass(frozen=True)
class Journey:
    number: int
    title: str
    commands: tuple[Command, ...]


def journeys() -> list[Journey]:
    found = []
    for part in re.split(r"^## (?=\d)", (HERE / "tour.md").read_text(), flags=re.MULTILINE)[1:]:
        number, _, title = part.splitlines()[0].partition(". ")
        found.append(Journey(int(number), title, tuple(_commands(part))))
    return found


def _commands(part: str) -> Iterator[Command]:
    for block in re.findall(r"^```console\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL):
        for said in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            typed, *prints = said.splitlines()
            command, _, code = typed.partition("   # exit ")
            yield Command(command, int(code or 0), tuple(prints))


def missing(command: Command, printed: str) -> str | None:
    """The first line that was to be printed and was not, after those before it. Spaces count as one."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for wanted in command.prints:
        pattern = re.compile(
            ".*".join(re.escape(" ".join(text.split())) for text in wanted.split("…")).replace("\\ .*", " ?.*")
        )
        if not any(pattern.search(line) for line in lines):
            return wanted
    return None


def travel(journey: Journey, binaries: Path) -> str | None:
    """Walk a journey in a fresh copy of this folder; what went otherwise than written, or None."""
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTHONPATH", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        for file in HERE.glob("*.py"):
            if not file.name.startswith("__"):
                shutil.copy(file, folder)
        for command in journey.commands:
            done = subprocess.run(
                ["bash", "-c", command.typed], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            said = f"$ {command.typed}\n{done.stdout}{done.stderr}"
            if done.returncode != command.ends_with:
                return f"{said}\nended with {done.returncode}, not {command.ends_with}"
            if (line := missing(command, done.stdout + done.stderr)) is not None:
                return f"{said}\ndid not print: {line}"
    return None


def main(arguments: list[str]) -> int:
    binaries, chosen = Path(arguments[0]).absolute(), set(map(int, arguments[1:]))
    failed = 0
    for journey in journeys():
        if chosen and journey.number not in chosen:
            continue
        wrong = travel(journey, binaries)
        failed += wrong is not None
        print(f"{'ok    ' if wrong is None else 'FAILED'}  {journey.number}. {journey.title}", flush=True)
        if wrong is not None:
            print(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
