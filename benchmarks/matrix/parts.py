"""The parts of a setting: what is run in its venv, and what becomes of each test or case there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks import case_files
from benchmarks.matrix import outcomes
from benchmarks.matrix.ledger import Outcome
from benchmarks.matrix.venvs import Setting, Venv

LIMIT = 5400.0
"""Seconds for one part; far more than any takes."""

Part = Callable[[Venv], dict[str, Outcome]]

LOWEST_TESTS = (
    "tests/test_seeds.py",
    "tests/test_write.py",
    "tests/test_export_whole_way.py",
    "tests/test_versions.py",
    "tests/lower/test_opsets.py",
    "tests/report",
    "tests/cli/test_commands.py",
    "tests/control_flow/test_branches.py",
    "tests/control_flow/test_carried.py",
    "tests/control_flow/test_while.py",
)
"""Those in which onnx, onnx-ir, the runtime, click, rich and jinja2 do something."""


class PartFailed(Exception):
    """The measuring itself failed; never counted as a result."""


def _inside(part: str, venv: Venv) -> dict[str, Outcome]:
    written = venv.folder / f"{part}.json"
    done = venv.run("-m", "benchmarks.matrix.inside", part, str(written), limit=LIMIT)
    if done.returncode:
        raise PartFailed(f"{part}: {done.stderr[-3000:]}")
    return {name: Outcome(*found) for name, found in json.loads(written.read_text()).items()}


def _cases(suite: str, venv: Venv) -> dict[str, Outcome]:
    written = venv.folder / f"{suite}.json"
    cases = replace(venv, environment=venv.environment | {"TRUEPORT_CASES": str(case_files.folder())})
    words = ("--no-peers", "--suite", suite, "--jobs", "1", "--json", str(written))
    done = cases.run("-m", "benchmarks.cases", *words, limit=LIMIT)
    if done.returncode:
        raise PartFailed(f"{suite}: {done.stderr[-3000:]}")
    found = {}
    for case in json.loads(written.read_text())["cases"]:
        judged = case["judgement"]
        verdict = " ".join(filter(None, (judged["verdict"], judged["code"], judged["at"])))
        found[case["name"]] = Outcome(verdict, judged["detail"])
    return found


def run_tests(paths: Sequence[str], venv: Venv) -> dict[str, Outcome]:
    """Pytest, again after each test that ended the process."""
    written = venv.folder / "outcomes.jsonl"
    written.unlink(missing_ok=True)
    asked = replace(venv, environment=venv.environment | {"TRUEPORT_OUTCOMES": str(written)})
    words = ("-q", "-p", "benchmarks.matrix.outcomes", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    while True:
        done = asked.run("-m", "pytest", *words, *paths, limit=LIMIT)
        found = outcomes.read(written)
        died = [name for name, (outcome, _) in found.items() if outcome == outcomes.BEGAN]
        if not died:
            break
        for name in died:
            outcomes.write(written, name, "crashed", f"the process ended with {done.returncode}")
    if not found or done.returncode not in (0, 1, 5):  # all passed, some failed, none was left
        raise PartFailed(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-1000:]}")
    return {name: Outcome(outcome, why) for name, (outcome, why) in found.items()}


def parts_of(setting: Setting) -> Mapping[str, Part]:
    """In the order of running: the quickest first."""
    parts: dict[str, Part] = {"canary": partial(_inside, "canary")}
    parts |= {suite: partial(_cases, suite) for suite in case_files.SUITES}
    if setting.lowest:
        return parts | {"tests": partial(run_tests, LOWEST_TESTS)}
    return parts | {
        "control flow": partial(run_tests, ("tests/control_flow",)),
        "operators": partial(_inside, "operators"),
    }


GOOD = frozenset(("holds", "faithful", "diagnosed", "unmeasurable", "passed", "skipped", "xskipped"))


def good(outcome: Outcome) -> bool:
    """Whether this is what one wants, whatever the other releases say."""
    return outcome.verdict.split()[0] in GOOD
