"""`python -m benchmarks.verify_others`: does `trueport verify` find what is wrong with other exporters' files?

Every shared case is exported with both settings of torch.onnx. Whether the file is wrong is decided by the case's own
inputs; `trueport verify` is given only the example and the free sizes, and has to find an input that shows it, or calls
in turn where eager remembers them or draws random numbers. A file that does not load at all needs none, and counts as
shown. Where eager itself refuses the example, there is no answer that a file could be held against: such files are
counted apart, and the refusal is what is told of them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import case_files, children, results
from benchmarks.case_files import SUITES, Suite
from benchmarks.case_run import list_names
from benchmarks.exporters import PEERS, TITLES
from benchmarks.judge import Verdict
from benchmarks.verify_others_run import Found, verify_case


def run_case(suite: Suite, name: str, exporter: str, limit: float, kept: Path | None = None) -> Found:
    ending = children.run(verify_case, suite, name, exporter, kept, limit=limit)
    if ending.died:
        verdict = Verdict.CRASHED if ending.last_phase == "verify" else None
        return Found(suite, name, exporter, verdict, f"{ending.died} in {ending.last_phase}")
    assert isinstance(ending.value, Found)
    return ending.value


class Done:
    """What an earlier run left in its folder, so that one which was interrupted goes on where it was."""

    def __init__(self, work: Path | None) -> None:
        self._work = work
        self._rows: dict[tuple[str, str, str], Found] = {}
        if work is not None and (work / "rows.jsonl").exists():
            for line in (work / "rows.jsonl").read_text().splitlines():
                fields = json.loads(line)
                verdict = None if fields["verdict"] is None else Verdict(fields["verdict"])
                row = Found(**{**fields, "codes": tuple(fields["codes"]), "verdict": verdict})
                self._rows[row.suite, row.name, row.exporter] = row

    def row(self, suite: Suite, name: str, exporter: str) -> Found | None:
        return self._rows.get((suite, name, exporter))

    def folder_of(self, suite: Suite, name: str, exporter: str) -> Path | None:
        return None if self._work is None else self._work.absolute() / f"{suite}.{name}.{exporter}"

    def keep(self, row: Found) -> None:
        if self._work is not None:
            self._work.mkdir(parents=True, exist_ok=True)
            with (self._work / "rows.jsonl").open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")


def summary(rows: Sequence[Found]) -> str:
    """How many files were wrong and found to be; how many were faithful and said to be."""
    lines = []
    for exporter in (*PEERS, "both"):
        mine = [row for row in rows if exporter in (row.exporter, "both")]
        files = [row for row in mine if row.verdict is not None]
        wrong = [row for row in files if row.is_wrong and row.answerable]
        unanswered = [row for row in files if row.is_wrong and not row.answerable]
        right = [row for row in files if row.verdict is Verdict.FAITHFUL]
        lines.append(
            [
                TITLES.get(exporter, exporter),
                len(files),
                f"{sum(bool(row.codes) for row in wrong)} of {len(wrong)}",
                f"{sum(bool(row.shown) for row in wrong)} of {len(wrong)}",
                f"{sum(bool(row.codes) for row in unanswered)} of {len(unanswered)}",
                f"{sum(bool(row.codes) for row in right)} of {len(right)}",
                sum(row.verdict is Verdict.CRASHED for row in files),
            ]
        )
    header = [
        "exporter",
        "files",
        "wrong, and reported",
        "by a counterexample",
        "eager refuses the example, and told",
        "faithful by the case's inputs, and accused",
        "died",
    ]
    return results.table(header, lines)


def listing(rows: Sequence[Found]) -> str:
    shown = [row for row in rows if row.is_wrong or row.codes]
    lines = [
        [
            row.name,
            TITLES[row.exporter],
            row.verdict,
            " ".join(row.codes) or "not found",
            row.shown or ("" if row.answerable else "eager refuses the example"),
            row.line,
            f"{row.seconds:.1f}",
        ]
        for row in shown
    ]
    return results.table(
        ["case", "exporter", "by its own inputs", "trueport verify", "shown by", "line", "seconds"], lines
    )


def accusations(rows: Sequence[Found]) -> str:
    """What was said of files that the case's inputs show nothing against."""
    found = [row for row in rows if row.verdict is Verdict.FAITHFUL and row.codes]
    return "\n".join(f"- {row.name} [{row.exporter}]: {row.told[:400]}" for row in found) or "none"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify_others", description=__doc__)
    parser.add_argument("--only", metavar="REGEX")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one case and exporter")
    parser.add_argument(
        "--work", type=Path, help="keep the peers' files here, and the rows: what is there is not done again"
    )
    options = parser.parse_args(arguments)
    results.circumstances()
    if not case_files.available():
        print(f"no cases in {case_files.folder()}: set TRUEPORT_CASES to their folder", file=sys.stderr)
        return 2
    children.preload(["onnxscript", "trueport.api", "benchmarks.verify_others_run"])
    listed = [(suite, name) for suite in SUITES for name in children.run(list_names, suite, limit=120).value]
    done = Done(options.work)
    rows: list[Found] = []
    for suite, name in listed:
        if options.only and not re.search(options.only, name):
            continue
        for exporter in PEERS:
            row = done.row(suite, name, exporter)
            if row is None:
                row = run_case(suite, name, exporter, options.limit, done.folder_of(suite, name, exporter))
                done.keep(row)
            rows.append(row)
            said = f"{row.verdict or 'no file'} -> {' '.join(row.codes) or 'nothing'} {row.line} {row.seconds:.1f} s"
            print(f"{name} {exporter}: {said}", file=sys.stderr, flush=True)
    text = summary(rows)
    print(listing(rows), accusations(rows), text, sep="\n\n")
    if not options.only:
        title = f"# Other exporters' files under `trueport verify`\n\n{(__doc__ or '').strip()}\n"
        accused = f"## Said of files that the case's own inputs show nothing against\n\n{accusations(rows)}"
        content = {"files": [asdict(row) for row in rows]}
        results.keep("verify_others", content, f"{title}\n{text}\n\n{listing(rows)}\n\n{accused}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
