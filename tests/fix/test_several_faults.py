"""A model as a hurried user wrote it: nine faults of seven kinds in two files of a package, mended together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fix.test_fixtures import command_in
from trueport.cli.trial import trials
from trueport.fix.edit import unified_diff
from trueport.fix.search import find_fixes

PACKAGE = Path(__file__).parent / "several_faults"


def test_they_are_all_mended_and_verified_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PACKAGE, tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    command = command_in(Path("shop/model.py"), "# trueport fix ")
    assert command is not None
    with trials() as trial:
        sought = find_fixes(command, trial)
    assert sought.found_a_way, [str(one) for one in sought.after.report.diagnostics]
    assert sought.state.command == command_in(Path("shop/model.py"), "# then: ")
    assert {found.code for found, _ in sought.state.taken} == {"TP002", "TP004", "TP202", "TP203", "TP204", "TP301"}
    changed = [line for line in unified_diff(sought.changes).splitlines() if line[:1] in "+-"]
    assert changed == (PACKAGE / "expected.diff").read_text().splitlines()
