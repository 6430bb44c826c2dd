"""A plugin of pytest's: each test's outcome, a line of JSON as it goes, in the file that TRUEPORT_OUTCOMES names.

Tests that are in the file are not run again. So a process that a test kills loses that test only: it is the one that
began and has no outcome.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

BEGAN = "began"


def read(path: Path) -> dict[str, tuple[str, str]]:
    """Outcome and reason by test, the last line of each."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: (outcome, why) for name, outcome, why in map(json.loads, lines)}


def _path() -> Path:
    return Path(os.environ["TRUEPORT_OUTCOMES"])


def write(path: Path, name: str, outcome: str, why: str = "") -> None:
    with path.open("a") as file:
        file.write(json.dumps([name, outcome, why]) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    done = read(_path())
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    write(_path(), nodeid, BEGAN)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        outcome = f"x{report.outcome}" if hasattr(report, "wasxfail") else report.outcome
        write(_path(), report.nodeid, outcome, _why(report))


def _why(report: pytest.TestReport) -> str:
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(str(crash.message if crash else report.longrepr).split())[:300]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(_path(), report.nodeid, "failed", f"cannot be imported: {str(report.longrepr)[-300:]}")
