"""The action, the problem matcher and the pre-commit hook: what of them can be run here, on real output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from trueport.cli.main import main
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.report import Report
from trueport.report.concise import report_concise
from trueport.report.text import report_text
from trueport.source import Place, Where

PROJECT = Path(__file__).parents[2]
MATCHERS = json.loads((PROJECT / ".github" / "trueport-matcher.json").read_text())["problemMatcher"]
REPORT = Report(
    model="Net",
    diagnostics=(
        StateWritten(message="`calls` is written", place=Place((Where("models/net.py", 7, "Net.forward", 9, 14),))),
        StateWritten(message="of no line"),
    ),
)


def matched(matcher: dict[str, Any], text: str) -> list[dict[str, str]]:
    """What GitHub's runner would make of a log: patterns match lines that follow one another."""
    found, lines = [], text.splitlines()
    for start in range(len(lines) - len(matcher["pattern"]) + 1):
        said: dict[str, str] = {}
        for pattern, line in zip(matcher["pattern"], lines[start:], strict=False):
            match = re.search(pattern["regexp"], line)
            if match is None:
                break
            said |= {key: match[index] for key, index in pattern.items() if key != "regexp"}
        else:
            found.append(said)
    return found


@pytest.mark.parametrize(("index", "rendered"), [(0, report_concise), (1, report_text)], ids=["concise", "full"])
def test_the_matcher_reads_what_is_printed(index: int, rendered: Any) -> None:
    (found,) = matched(MATCHERS[index], rendered(REPORT))
    assert (found["file"], found["line"]) == ("models/net.py", "7")
    assert (found["severity"], found["code"], found["message"]) == ("error", "TP203", "`calls` is written")


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((PROJECT / "action.yml").read_text())
    return loaded


def run_action(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    """The step of the action, as the runner runs it, with a `trueport` that is this one."""
    step = next(step for step in action()["runs"]["steps"] if step.get("id") == "run")
    command = folder / "bin" / "trueport"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trueport "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(folder / "output"),
        "RUNNER_TEMP": str(folder),
        "TRUEPORT_COMMAND": action()["inputs"]["command"]["default"],
        "TRUEPORT_ARGUMENTS": arguments,
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_action_annotates_the_line_and_leaves_the_report(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from torch import nn\nclass Net(nn.Module):\n"
        "    def forward(self, x):\n        return x * float(x.numpy().sum())\n"
    )
    done = run_action(tmp_path, "model.py:Net\n-i\nx:2x3\n\n")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=model.py,line=4,")
    report = Path((tmp_path / "output").read_text().removeprefix("report=").strip())
    assert report.read_text().startswith("<!doctype html>")


def test_no_input_of_the_action_becomes_a_command_of_the_shell() -> None:
    """`${{ inputs.x }}` in a script is code; in `env` it is a text."""
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_hook_and_the_examples_name_what_there_is() -> None:
    (hook,) = yaml.safe_load((PROJECT / ".pre-commit-hooks.yaml").read_text())
    program, command = hook["entry"].split()
    assert (program, hook["language"], hook["pass_filenames"]) == ("trueport", "system", False)
    assert command in main.commands
    config = yaml.safe_load((PROJECT / "examples/ci/pre-commit-config.yaml").read_text())
    assert [used["id"] for used in config["repos"][0]["hooks"]] == [hook["id"]]
    steps = yaml.safe_load((PROJECT / "examples/ci/workflow.yml").read_text())["jobs"]["export"]["steps"]
    used = next(step for step in steps if step.get("uses") == "./trueport")
    assert set(used["with"]) <= set(action()["inputs"])
