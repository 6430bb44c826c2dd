"""Runs the parts, each in a process of its own, and writes the page."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "soak"
PAGE = ROOT / "benchmarks" / "results" / "soak.md"
PARTS = {"exports": 300, "kills": 200, "races": 200, "mutated": 500}
"""And how often each is done, unless told otherwise."""
_SAYS = {
    "exports": "Exports and refusals of mixed models in one process, each verified; what it holds before and after.",
    "kills": "An export of a 20 MB model over an existing file, killed at a random moment; every 10 kills one run "
    "to the end, after which nothing else may be there.",
    "races": "Two processes save two models to one path at once; the one that is there must have its own weights.",
    "mutated": "Our own files with bytes or structure changed, given to `verify`; each one called faithful is compared "
    "again by onnxruntime and eager alone, on other inputs.",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given again")
    parser.add_argument("--count", type=int, help="how often, in place of the full count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=KEPT, help="where the results of each part are kept")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    parts = asked.part or list(PARTS)
    asked.keep.mkdir(parents=True, exist_ok=True)
    if asked.inside:
        _run(parts[0], asked.count, asked.seed, asked.keep)
        return
    for part in parts:
        count = asked.count or PARTS[part]
        command = [sys.executable, "-m", "benchmarks.soak", "--inside", "--part", part, "--count", str(count)]
        subprocess.run(
            [*command, "--seed", str(asked.seed), "--keep", str(asked.keep)],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    results = {part: json.loads(kept.read_text()) for part in PARTS if (kept := asked.keep / f"{part}.json").exists()}
    asked.page.write_text(page(results))
    faults = [fault for part in parts for fault in results[part]["faults"]]
    print("\n".join(faults) or "no faults")
    raise SystemExit(bool(faults))


def _run(part: str, count: int, seed: int, keep: Path) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name, part)
        folder.mkdir()
        if part == "exports":
            from benchmarks.soak import exports

            found = exports.run(count, folder)
        elif part == "kills":
            from benchmarks.soak import kills

            found = kills.run(count, seed, folder)
        elif part == "races":
            from benchmarks.soak import races

            found = races.run(count, seed, folder)
        else:
            from benchmarks.soak import mutated

            found = mutated.run(count, seed, folder)
        for wrong in Path(name).glob("wrong_*.onnx"):
            wrong.replace(keep / wrong.name)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found |= {"seconds": round(time.monotonic() - began), "commit": commit.stdout.strip()}
    (keep / f"{part}.json").write_text(json.dumps(found, indent=2, default=str))


def page(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "# Soak",
        "",
        "`make soak`, or `python -m benchmarks.soak --part exports|kills|races|mutated [--count N]`.",
        "",
    ]
    for part, found in results.items():
        lines += [f"## {part}", "", _SAYS[part], ""]
        lines += [
            f"- {what}: {_shown(value)}" for what, value in found.items() if what not in ("before", "after", "faults")
        ]
        if "before" in found:
            lines += ["", "| | before | after |", "|---|---|---|"]
            lines += [
                f"| {what} | {_short(was)} | {_short(found['after'][what])} |" for what, was in found["before"].items()
            ]
            lines.append("")
        lines += [f"- **faults: {len(found['faults'])}**", *(f"  - {fault}" for fault in found["faults"]), ""]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in sorted(value.items(), key=lambda item: str(item[0])))
    return "none" if value == [] else str(value)


def _short(text: str) -> str:
    return text if len(text) < 60 else text[:57] + "…"


if __name__ == "__main__":
    main()
