"""`python -m benchmarks.verify_cost`: what the default check adds to an export.

Seconds of the processor, in the process itself and in the worker that runs the file: they depend less on what else the
machine does. A few exports of each model in a process of their own. The first also pays for what torch and the worker
load, and for each distinct call by itself; *again* is the cheapest of three others, which is what a model costs that
was exported before. The ratio is that of the check to all the rest. Where there are branches to look for, the check of
a tiny model has a floor (docs/decisions.md): a search as short as the export of such a model would find nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks import children, results
from benchmarks.verify_cost_run import MODELS, Cost, measure


def table(rows: Sequence[tuple[Cost, Cost]]) -> str:
    lines = [
        [
            first.name,
            *(f"{seconds:.2f}" for cost in (first, again) for seconds in (cost.export, cost.check, cost.ratio)),
            again.inputs,
            again.workers,
        ]
        for first, again in rows
    ]
    header = ["model", "export s", "check s", "ratio", "again: export s", "check s", "ratio", "inputs", "workers"]
    return results.table(header, lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify_cost", description=__doc__)
    parser.add_argument("--only", metavar="REGEX")
    options = parser.parse_args(arguments)
    results.circumstances()
    children.preload(["onnxscript", "trueport.api", "benchmarks.verify_cost_run"])
    rows: list[tuple[Cost, Cost]] = []
    for name in MODELS:
        if options.only and not re.search(options.only, name):
            continue
        ending = children.run(measure, name, limit=600)
        if ending.died:
            print(f"{name}: {ending.died} in {ending.last_phase}", file=sys.stderr)
            return 1
        rows.append(ending.value)
        print(f"{name}: {' '.join(f'{cost.ratio:.2f}' for cost in ending.value)}", file=sys.stderr, flush=True)
    print(table(rows))
    if not options.only:
        title = f"# What the default check adds to an export\n\n{(__doc__ or '').strip()}\n"
        results.keep("verify_cost", {"models": [[asdict(c) for c in pair] for pair in rows]}, f"{title}\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
