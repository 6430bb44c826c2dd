"""What the pages show is true: the first example gives exactly this finding, the second exports and is verified."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.diagnostics.pages import example, run
from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.diagnostics import Severity
from trueport.diagnostics.registry import Rule, all_rules

RUN = [kind for kind in all_rules().values() if not kind.no_example]
IN_PYTHON = [kind for kind in RUN if example(kind, "Example").language == "python"]
IN_A_SHELL = [kind for kind in RUN if example(kind, "Example").language == "sh"]

MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, depth=1):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(3, 3) for _ in range(depth)))

    def forward(self, x):
        return self.layers(x)


def deep_net():
    return Net(depth=3)
"""
"""The `model.py` that examples for a shell speak of."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", IN_PYTHON, ids=lambda kind: kind.code)
def test_the_first_example_gives_exactly_this_finding_at_the_marked_line(kind: Rule) -> None:
    outcome = run(example(kind, "Example").code, f"{kind.code}_example")
    assert {found.code for found in outcome.findings} == {kind.code}, [str(found) for found in outcome.findings]
    assert outcome.refused is (kind.default_severity is Severity.ERROR)
    if outcome.marked_line is not None:
        assert [(found.where.file, found.where.line) for found in outcome.findings if found.where] == [
            (str(outcome.file), outcome.marked_line)
        ]
        assert all(found.where for found in outcome.findings)


@pytest.mark.parametrize("kind", IN_PYTHON, ids=lambda kind: kind.code)
def test_the_mended_example_exports_and_is_verified(kind: Rule) -> None:
    outcome = run(example(kind, "Mended").code, f"{kind.code}_mended")
    assert not outcome.refused, [str(found) for found in outcome.findings]
    assert outcome.verified
    assert not [str(found) for found in outcome.findings if found.weight is not Severity.NOTE]


def commands(kind: Rule, heading: str) -> list[Result]:
    """Each line of an example for a shell, run in a folder with a `model.py`."""
    Path("model.py").write_text(MODEL)
    lines = example(kind, heading).code.splitlines()
    results = []
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "trueport"
        results.append(CliRunner().invoke(main, arguments))
        Path("net.onnx").unlink(missing_ok=True)
    return results


@pytest.mark.parametrize("kind", IN_A_SHELL, ids=lambda kind: kind.code)
class TestInAShell:
    def test_each_line_of_the_first_example_gives_this_finding(self, kind: Rule) -> None:
        for result in commands(kind, "Example"):
            assert result.exit_code == Exit.USAGE, result.output
            assert f"error[{kind.code}]" in result.stderr

    def test_each_line_of_the_mended_example_is_faithful(self, kind: Rule) -> None:
        for result in commands(kind, "Mended"):
            assert result.exit_code == Exit.FAITHFUL, result.output


def test_what_has_no_example_says_why_and_is_little() -> None:
    """Everything that a small model can show is shown."""
    without = {code: kind.no_example for code, kind in all_rules().items() if kind.no_example}
    assert set(without) == {
        "TP007",
        "TP108",
        "TP206",
        "TP602",
        "TP603",
        "TP701",
        "TP806",
        "TP807",
        "TP813",
        "TP820",
        "TP901",
    }
    assert all(len(reason) > 20 for reason in without.values())
