"""`python -m benchmarks.cases`: every shared case through trueport and both settings of torch.onnx, in one run.

Each case and exporter has a process of its own: a fork of a server that has imported torch and onnxruntime and done
nothing else. The verdicts are explained in `benchmarks.judge`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from benchmarks import case_files, children, results
from benchmarks.case_files import SUITES, Suite
from benchmarks.case_run import Row, list_names, run_case
from benchmarks.exporters import PEERS, TITLES, WITHOUT_PASSES, trueport_exists
from benchmarks.judge import Verdict

MARKS = {Verdict.FAITHFUL: "✓", Verdict.DIAGNOSED: "◇"}


def run_all(tasks: Sequence[tuple[Suite, str, str]], jobs: int, limit: float) -> list[Row]:
    rows: list[Row] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        for row in pool.map(lambda task: run_case(task[0], task[1], task[2], limit), tasks):
            rows.append(row)
            print(f"{len(rows)}/{len(tasks)} {row.name} {row.exporter}: {_cell(row)}", file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)  # a harness error must not wait for all the other cases
    return rows


def summary(rows: Sequence[Row], exporters: Sequence[str]) -> str:
    """How many of each verdict, by category, the exporters side by side."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.category, []).append(row)
    reports = [row for row in rows if row.suite == "reports"]
    groups["all seeds"] = [row for row in rows if row.suite == "seeds"]
    groups["all reports"] = reports
    groups["straight-line"] = [row for row in rows if not row.needs_control_flow]
    groups["control flow"] = [row for row in rows if row.needs_control_flow]
    groups["all"] = list(rows)
    groups.pop("seeds", None)
    header = ["category", "n", *(TITLES[exporter] for exporter in exporters)]
    lines = []
    for category, members in groups.items():
        if members:
            count = len({(row.suite, row.name) for row in members})
            lines.append([category, count, *(_tally(members, exporter) for exporter in exporters)])
    legend = "Each cell: faithful / diagnosed / refused / silent / invalid / crashed (good)."
    return f"{results.table(header, lines)}\n\n{legend}"


def _tally(rows: Sequence[Row], exporter: str) -> str:
    mine = [row for row in rows if row.exporter == exporter]
    counts = [sum(row.judgement.verdict is verdict for row in mine) for verdict in Verdict]
    return f"{' / '.join(map(str, counts))} ({sum(row.good for row in mine)})"


def listing(rows: Sequence[Row], exporters: Sequence[str]) -> str:
    """One line per case: the verdict of each exporter; `*` marks a case that needs control flow."""
    by_case: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault((row.category, row.name), {})[row.exporter] = row
    lines = []
    for (category, name), found in by_case.items():
        any_row = next(iter(found.values()))
        mark = " *" if any_row.needs_control_flow else ""
        wanted = " (diagnose)" if any_row.expect == "diagnose" else ""
        lines.append([category, name + mark + wanted, *(_cell(found[exporter]) for exporter in exporters)])
    return results.table(["category", "case", *(TITLES[exporter] for exporter in exporters)], lines)


def reasons(rows: Sequence[Row]) -> str:
    """Why, for every verdict that has a reason."""
    found = [row for row in rows if row.judgement.detail]
    return "\n".join(f"{row.name} [{row.exporter}] {row.judgement.verdict}: {row.judgement.detail}" for row in found)


def _cell(row: Row) -> str:
    found = row.judgement
    mark = MARKS.get(found.verdict, "✗")
    return " ".join(part for part in (mark, found.verdict.value, found.code, found.at) if part)


def as_json(rows: Sequence[Row]) -> dict[str, object]:
    return {"cases": [{**asdict(row), "needs_control_flow": row.needs_control_flow, "good": row.good} for row in rows]}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    if not case_files.available():
        print(
            f"no seeds.py and reports.py in {case_files.folder()}: set TRUEPORT_CASES to their folder", file=sys.stderr
        )
        return 2
    exporters = ["trueport"] if options.trueport and trueport_exists() else []
    if options.trueport and not exporters:
        print("trueport.export does not exist yet: only the peers run", file=sys.stderr)
    exporters += [WITHOUT_PASSES] if options.passes_off else []
    exporters += PEERS if options.peers else []
    suites: tuple[Suite, ...] = (options.suite,) if options.suite else SUITES
    children.preload(["onnxscript", "benchmarks.case_run", *(["trueport.api"] if "trueport" in exporters else [])])
    listed = [(s, n) for s in suites for n in children.run(list_names, s, limit=120).value if _wanted(n, options.only)]
    tasks = [(suite, name, exporter) for suite, name in listed for exporter in exporters]
    if not tasks:
        print("nothing to run", file=sys.stderr)
        return 2
    rows = run_all(tasks, options.jobs, options.limit)
    text = summary(rows, exporters)
    if options.verbose:
        print(listing(rows, exporters), reasons(rows), sep="\n\n", end="\n\n")
    print(text)
    if options.json:
        results.write_json(options.json, as_json(rows))
    if options.peers and not options.only and not options.suite:
        title = "# The shared cases, by exporter\n\n`python -m benchmarks.cases`; `*` marks what needs control flow.\n"
        results.keep("cases", as_json(rows), f"{title}\n{text}\n\n{listing(rows, exporters)}")
    return 0


def _wanted(name: str, pattern: str | None) -> bool:
    return pattern is None or re.search(pattern, name) is not None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="only the cases whose name matches")
    parser.add_argument("--suite", choices=SUITES)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--trueport", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--passes-off", action="store_true", help="trueport without passes as well")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the verdicts here")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one case and exporter")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every case, with the reasons")
    return parser


if __name__ == "__main__":
    sys.exit(main())
