"""`python -m benchmarks.mutants`: subtly wrong files of small models; how many does `trueport verify` find by default?

A mutant is a file that was changed by hand. A judge without any code of trueport proves that it is wrong: it names an
input, within the declared sizes and dtypes, at most 1 MB large, on which eager and the file differ beyond rounding
while the unchanged file agrees. `trueport verify` sees the example and the free sizes only. *Found* is an error; a
difference that was excused or only warned of is missed. A control is a file that gives the same answers: the unchanged
one, the same in other words, or another exporter's. An error on a control is an accusation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import children, results
from benchmarks.mutants import run
from benchmarks.mutants.cases import Case
from benchmarks.mutants.judge import OTHER_SIZES, OTHER_VALUES, THE_EXAMPLE
from benchmarks.mutants.run import Row

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Done:
    """The rows of earlier runs of the same code: one that was interrupted goes on where it was."""

    def __init__(self, work: Path) -> None:
        self._path = work / "rows.jsonl"
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                code, name, fields = json.loads(line)
                self._rows[code, name] = fields

    def row(self, case: Case) -> Row | None:
        """Rows of other code are not read: they may have other fields."""
        fields = self._rows.get((code_of(case.family), case.id))
        if fields is None:
            return None
        return Row(**{**fields, "codes": tuple(fields["codes"]), "warnings": tuple(fields["warnings"])})

    def keep(self, case: Case, row: Row) -> None:
        if not row.broken:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps([code_of(case.family), case.id, asdict(row)]) + "\n")


@cache
def code_of(family: str) -> str:
    """Of the product, of the benchmark and of one family of models: a row holds for the code that made it."""
    own = [*HERE.glob("*.py"), HERE / "models" / f"{family}.py"]
    files = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"), *own])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


def by_kind(rows: Sequence[Row]) -> str:
    lines = []
    for kind in [*dict.fromkeys(row.kind for row in rows), "all"]:
        mine = [row for row in rows if kind in (row.kind, "all")]
        hidden = [row for row in mine if row.takes != THE_EXAMPLE]
        lines.append([kind, _found(mine), _found(hidden), f"{sum(row.seconds for row in mine) / len(mine):.1f}"])
    return results.table(["kind", "found", "of those that the example does not show", "seconds each"], lines)


def by_need(rows: Sequence[Row]) -> str:
    names = (THE_EXAMPLE, OTHER_VALUES, OTHER_SIZES)
    lines = [[name, _found([row for row in rows if row.takes == name])] for name in names]
    return results.table(["shown by", "found"], lines)


def _found(rows: Sequence[Row]) -> str:
    return share(sum(row.found for row in rows), len(rows))


def by_control(rows: Sequence[Row]) -> str:
    lines = []
    controls = [row for row in rows if row.control]
    for name in [*dict.fromkeys(row.name for row in controls), "all"]:
        mine = [row for row in controls if name in (row.name, "all")]
        lines.append([name, len(mine), sum(row.found for row in mine)])
    return results.table(["control", "files", "accused"], lines)


def listing(rows: Sequence[Row]) -> str:
    lines = [
        [row.kind, row.id, row.proof[:110], " ".join(row.warnings), row.died or row.told[:110], f"{row.seconds:.1f}"]
        for row in sorted(rows, key=lambda row: row.kind)
    ]
    return results.table(["kind", "mutant", "what the witness shows", "warned", "first words", "seconds"], lines)


def report(rows: Sequence[Row]) -> str:
    mutants = [row for row in rows if not row.control and row.counts]
    controls = [row for row in rows if row.control and row.counts]
    missed = [row for row in mutants if not row.found]
    accused = [row for row in controls if row.found]
    models = len({row.model for row in mutants})
    head = f"{_found(mutants)} mutants of {models} models found; {len(accused)} of {len(controls)} controls accused."
    told = "\n".join(f"- {row.id}: {' '.join(row.codes)} {row.told[:300]}" for row in accused) or "none"
    parts = [
        head,
        by_kind(mutants),
        by_need(mutants),
        by_control(controls),
        "## Missed",
        listing(missed),
        "## Accused",
        told,
    ]
    return "\n\n".join(parts)


def measured(chosen: Sequence[Case], done: Done, workers: int, limit: float) -> Iterator[Row]:
    """In the order of the list, kept as they come."""

    def one(case: Case) -> Row:
        row = done.row(case)
        if row is None:
            row = run.watched(case, limit)
            done.keep(case, row)
            print(f"{case.id}: {said(row)}", file=sys.stderr, flush=True)
        return row

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, chosen)


def said(row: Row) -> str:
    if row.broken:
        return f"BROKEN {row.died}"
    if not row.counts:
        return f"no such file: {row.absent[:100]}"
    word = ("ACCUSED" if row.found else "ok") if row.control else ("found" if row.found else "MISSED")
    return " ".join([word, *row.codes, f"{row.seconds:.1f} s", row.died])


def _part(text: str) -> tuple[int, int]:
    part, parts = map(int, text.split("/"))
    return part, parts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="of `kind: model/mutant`; results/ stays as it is then")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--no-controls", action="store_true")
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="K/N", help="each Nth case, from the Kth on")
    parser.add_argument("-j", "--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one file")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="what was done is kept here")
    options = parser.parse_args(arguments)
    part, parts = options.part
    chosen = [
        case
        for place, case in enumerate(run.cases())
        if re.search(options.only or "", f"{case.kind}: {case.id}")
        and not (case.control and options.no_controls)
        and place % parts == part - 1
    ]
    if options.list:
        print("\n".join(f"{case.kind}: {case.id}" for case in chosen))
        return 0
    results.circumstances()
    models = [f"benchmarks.mutants.models.{file.stem}" for file in sorted((HERE / "models").glob("[a-z]*.py"))]
    children.preload(["onnxscript", "trueport.api", "benchmarks.mutants.run", *models])
    for case in chosen:
        code_of(case.family)  # what is read now is what runs
    rows = list(measured(chosen, Done(options.work), options.workers, options.limit))
    text = report(rows)
    print(text)
    broken = [row for row in rows if row.broken]
    for row in broken:
        print(f"broken: {row.id}: {row.died}", file=sys.stderr)
    if not options.only and not options.no_controls and parts == 1 and not broken:
        title = f"# Wrong files under `trueport verify`\n\n{(__doc__ or '').strip()}\n"
        today = f"{datetime.now(tz=UTC):%Y-%m-%d}"
        content = {"date": today, "files": [asdict(row) for row in rows]}
        results.keep("mutants", content, f"{title}\n{text}\n\nMeasured on {today}.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
