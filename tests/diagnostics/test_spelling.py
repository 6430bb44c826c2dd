"""A fix names an option once; it is read as an argument in Python and as a flag on the command line."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import trueport
from trueport.cli.main import main
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.spelling import Option, in_a_shell, option, size_range, told

SOURCE = Path(trueport.__file__).parent


@pytest.mark.parametrize(
    ("given", "python", "flag"),
    [
        (option("overwrite", True), "overwrite=True", "--overwrite"),
        (option("verify", False), "verify=False", "--no-verify"),
        (option("opset_version", 21), "opset_version=21", "--opset 21"),
        (option("state", "frozen"), 'state="frozen"', "--state frozen"),
        (option("constants", ["a", "b"]), 'constants=["a", "b"]', "--constants a,b"),
        (option("rtol", ...), "rtol=...", "--rtol ..."),
        (size_range("H", 1), 'Dim("H", min=1)', "--dim H=1.."),
        (size_range("H", 1, 9), 'Dim("H", min=1, max=9)', "--dim H=1..9"),
    ],
)
def test_both_spellings(given: Option, python: str, flag: str) -> None:
    text = told("pass ", given, "; {names} may hold braces")
    assert text == f"pass {python}; {{names}} may hold braces"
    assert in_a_shell(UsageFault(message="m", fix=text)).fix == f"pass {flag}; {{names}} may hold braces"


def test_it_travels_with_the_finding() -> None:
    """Through a pickle (trials run in processes of their own), and through what makes findings of findings."""
    found = UsageFault(message="m", fix=told("pass ", option("thorough", True)))
    again = replace(pickle.loads(pickle.dumps(found)), message="n")
    assert again.fix == "pass thorough=True"
    assert in_a_shell(again).fix == "pass --thorough"


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


def test_each_front_end_speaks_its_own_language() -> None:
    (found,) = trueport.check(Counts(), (torch.ones(2),)).errors
    assert 'state="frozen"' in found.fix
    assert "--" not in found.fix
    shown = CliRunner().invoke(main, ["check", f"{__name__}:Counts", "-i", "x:2", "-q"])
    assert "--state frozen" in shown.stdout, shown.output
    assert "state=" not in shown.stdout


def test_no_fix_is_written_in_one_language_only() -> None:
    """A flag or an argument of ours, written out in a text that both front ends may show."""
    flag = re.compile(
        r"(fix=|fix = |_fix\().*(--[a-z]+|\b(overwrite|thorough|verify|nonfinite)=(True|False)|\b(state|random)=\\?\")"
    )
    rooms = [
        each for each in SOURCE.rglob("*.py") if each.relative_to(SOURCE).parts[0] not in ("cli", "fix", "diagnostics")
    ]
    found = [
        f"{file.relative_to(SOURCE)}: {line.strip()}"
        for file in rooms
        for line in file.read_text().splitlines()
        if flag.search(line) and "told(" not in line
    ]
    python_only = ("api.py", "load/torch_arguments.py", "load/spec_sizes.py", "load/spec_text.py")
    assert [each for each in found if not each.startswith(python_only)] == []
