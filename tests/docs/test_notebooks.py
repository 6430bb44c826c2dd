"""The notebooks run from top to bottom. Here without a kernel, cell by cell; `make docs` runs them in one."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_two() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["control_flow", "first_export"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(notebook.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "saved without outputs: they are made when the site is built"
        source, name = "".join(cell["source"]), f"<cell {number} of {notebook.stem}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # as a kernel does
        exec(compile(source, name, "exec"), names)
    shown = names["report"] if "report" in names else names["program"]
    assert "<b>" in shown._repr_html_()
