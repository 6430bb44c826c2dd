"""`python -m benchmarks.ops`: torch's own samples of every operator, exported and compared with eager.

Each variant (a dtype, fixed or free sizes) is kept in `results/ops/`, one line per operator, as it goes: a run that was
interrupted goes on where it stopped. `--retry` measures again what was not faithful.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from benchmarks import results
from benchmarks.ops import tables
from benchmarks.ops.kept import Kept, Line
from benchmarks.ops.samples import VARIANTS, operators
from benchmarks.ops.worker import PEER_SAMPLES, Task, watched


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    for variant in options.dtypes:
        for free in (False, True) if options.sizes == "both" else (options.sizes == "free",):
            _sweep(variant, free, "trueport", options)
            if options.peer:
                _sweep(variant, free, "dynamo", options)
    tables.write()
    return 0


def _sweep(variant: str, free: bool, exporter: str, options: argparse.Namespace) -> None:
    kept = Kept(variant, free, exporter)
    if options.fresh:
        kept.forget()
    wanted = [name for name in operators(variant) if options.only is None or re.search(options.only, name)]
    todo = [name for name in wanted if not kept.has(name) or (options.retry and not kept.lines[name].all_faithful)]
    limit = min(PEER_SAMPLES, options.samples) if exporter != "trueport" else options.samples
    with watched(options.limit) as worker:
        for done, name in enumerate(todo, 1):
            outcomes = worker.run(Task(name, variant, free, exporter, limit))
            line = Line.of(name, outcomes)
            kept.add(line)
            print(f"{kept.title} {done}/{len(todo)} {name}: {line.summary}", file=sys.stderr, flush=True)
    kept.write()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ops", description=__doc__)
    parser.add_argument("--dtypes", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--sizes", choices=("fixed", "free", "both"), default="both")
    parser.add_argument("--only", metavar="REGEX", help="only the operators whose name matches")
    parser.add_argument("--samples", type=int, default=12, help="at most so many samples of an operator")
    parser.add_argument("--peer", action="store_true", help=f"also dynamo=True, on at most {PEER_SAMPLES} samples")
    parser.add_argument("--retry", action="store_true", help="again what was not faithful")
    parser.add_argument("--fresh", action="store_true", help="everything again")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one sample")
    return parser


if __name__ == "__main__":
    sys.exit(main())
