"""What every kept result says about where it came from, and Markdown tables."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"
PACKAGES = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "numpy")


@cache
def circumstances() -> dict[str, str]:
    """Versions, machine and commit: a number without them cannot be checked.

    Asked first at the start of a command and kept: the tree may move on while it runs.
    """
    found = {"python": platform.python_version(), "cores": str(os.cpu_count())}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    changed = " with uncommitted changes in src" if _git("status", "--porcelain", "--", "../src") else ""
    found["commit"] = (_git("rev-parse", "--short", "HEAD") or "unknown") + changed
    return found


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table whose columns also line up in a terminal."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"circumstances": circumstances(), **content}, indent=1) + "\n")


def keep(name: str, content: dict[str, Any], text: str) -> None:
    """`results/NAME.json` and `results/NAME.md`."""
    write_json(FOLDER / f"{name}.json", content)
    where = ", ".join(f"{key} {value}" for key, value in circumstances().items())
    (FOLDER / f"{name}.md").write_text(f"{text}\n\n{where}\n")
