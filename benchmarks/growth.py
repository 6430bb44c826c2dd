"""`python -m benchmarks.growth`: how the cost of an export grows with the control flow of a model.

Each family is one program at several sizes: so many functions that decide, loops within loops, arms of an `elif`. Each
is exported twice in a process of its own without the check; the seconds are the processor's, of the second export.
`traces` counts how often the whole model was traced, `rounds` how often the body of a loop was, over all traces.
`written` says whether ONNX could read the file back, or with which code the model was refused. A run that takes more
than the limit is ended.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks import children, results
from benchmarks.growth_run import FAMILIES, Cost, measure

_LIMIT = 120.0


def table(rows: Sequence[Cost]) -> str:
    before: dict[str, Cost] = {}
    lines = []
    for cost in rows:
        last = before.get(cost.family)
        known = last is not None and last.seconds is not None and cost.seconds is not None
        ratio = f"{cost.seconds / last.seconds:.1f}" if known else "-"  # type: ignore[operator, union-attr]
        seconds = f"> {_LIMIT:.0f}" if cost.seconds is None else f"{cost.seconds:.2f}"
        lines.append([cost.family, cost.count, seconds, ratio, cost.traces, cost.rounds, cost.written])
        before[cost.family] = cost
    return results.table(["family", "count", "s", "times the last", "traces", "rounds", "written"], lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--only", metavar="REGEX")
    options = parser.parse_args(arguments)
    results.circumstances()
    children.preload(["onnxscript", "trueport.api", "benchmarks.growth_run"])
    rows: list[Cost] = []
    for family, (_, counts) in FAMILIES.items():
        for count in counts if not options.only or re.search(options.only, family) else ():
            ending = children.run(measure, family, count, limit=_LIMIT)
            cost = Cost(family, count, None, 0, 0, ending.died) if ending.died else ending.value
            rows.append(cost)
            print(cost, file=sys.stderr, flush=True)
    print(table(rows))
    if not options.only:
        title = f"# How the cost of an export grows with control flow\n\n{(__doc__ or '').strip()}\n"
        results.keep("growth", {"programs": [asdict(cost) for cost in rows]}, f"{title}\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
