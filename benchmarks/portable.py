"""`python -m benchmarks.portable`: what `trueport fix --portable` does for torch.onnx.export(dynamo=True).

Each shared case that needs control flow is exported by torch as it is, then as the fix writes it. Both files are
compared with the case's own model, unchanged, on all of the case's inputs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks import case_files, children, results
from benchmarks.case_files import CONTROL_FLOW, SUITES
from benchmarks.case_run import list_names, run_case
from benchmarks.judge import Verdict
from benchmarks.portable_run import After, run_portable

TITLE = """# `trueport fix --portable`

`python -m benchmarks.portable`: the shared cases with control flow through `torch.onnx.export(dynamo=True)`, as they
are and as `trueport fix --portable` writes them; compared with the unchanged model on all inputs of the case.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portable", description=__doc__)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one case")
    parser.add_argument("--only", metavar="NAME", nargs="*", help="only these cases; nothing is stored then")
    options = parser.parse_args(arguments)
    results.circumstances()
    if not case_files.available():
        print(f"no seeds.py and reports.py in {case_files.folder()}: set TRUEPORT_CASES", file=sys.stderr)
        return 2
    children.preload(["onnxscript", "benchmarks.portable_run", "trueport.api"])
    rows: list[After] = []
    lines: list[list[str]] = []
    for suite in SUITES:
        for name in children.run(list_names, suite, limit=120).value:
            if name not in CONTROL_FLOW or (options.only and name not in options.only):
                continue
            before = run_case(suite, name, "dynamo", options.limit).judgement.verdict
            after = run_portable(suite, name, before, options.limit)
            rows.append(after)
            lines.append([name, CONTROL_FLOW[name], before.value, after.verdict.value, after.why])
            print(f"{name}: {before.value} → {after.verdict.value} {after.why}", file=sys.stderr)
    faithful = [
        sum(verdict is Verdict.FAITHFUL for verdict in each) for each in zip(*map(_verdicts, rows), strict=True)
    ]
    text = f"faithful before: {faithful[0]} of {len(rows)}; after `fix --portable`: {faithful[1]} of {len(rows)}"
    table = results.table(["case", "what decides", "as it is", "made portable", "why not"], lines)
    print(f"{table}\n\n{text}")
    if not options.only:
        results.keep("portable", {"cases": [asdict(row) for row in rows]}, f"{TITLE}\n{text}\n\n{table}")
    return 0


def _verdicts(row: After) -> tuple[Verdict, Verdict]:
    return row.before, row.verdict


if __name__ == "__main__":
    sys.exit(main())
