"""`python -m benchmarks.edges`: every translated operator in every dtype, call by call, on edge operands.

The calls are those into which torch's own samples of an operator are captured; each distinct one is lowered and run by
itself, with all pairs of 8-bit integers. What was found is kept in `results/edges/`, one line per operator and dtype,
as it goes: a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import children, results
from benchmarks.edges import kept, tables
from benchmarks.edges.sweep import Swept, sweep
from benchmarks.ops.samples import UNINITIALISED, operators

VARIANTS = "float32 int64 int32 uint8 int8 bool float64 float16 bfloat16 int16 complex64".split()
_BATCH = 12


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    commit = results.circumstances()["commit"]
    children.preload(["onnxscript", "trueport.api", "benchmarks.edges.sweep", "benchmarks.edges.preloaded"])
    for variant in options.dtypes:
        file = kept.FOLDER / f"{variant}.jsonl"
        if options.fresh:
            file.unlink(missing_ok=True)
        _sweep(variant, file, options, commit)
    tables.write(VARIANTS)
    return 0


def _sweep(variant: str, file: Path, options: argparse.Namespace, commit: str) -> None:
    before = {swept.operator: swept for swept in kept.read(file)}
    known = {call.digest for swept in before.values() for call in swept.calls}
    wanted = [name for name in operators(variant) if options.only is None or re.search(options.only, name)]
    todo = [name for name in wanted if name not in before and name not in UNINITIALISED]
    while todo:
        batch, todo = todo[:_BATCH], todo[_BATCH:]
        ending = children.run(sweep, batch, variant, known, options.samples, limit=options.limit)
        if ending.died:
            culprit = ending.last_phase
            print(f"{variant} {culprit}: {ending.died}", file=sys.stderr, flush=True)
            at = batch.index(culprit) if culprit in batch else 0
            kept.add(file, Swept(batch[at], (), 0, f"ended its process: {ending.died}", commit))
            todo = [*batch[:at], *batch[at + 1 :], *todo]
            continue
        for swept in ending.value:
            kept.add(file, replace(swept, commit=commit))
            known |= {call.digest for call in swept.calls}
            differing = [call for call in swept.calls if call.shown]
            print(f"{variant} {swept.operator}: {len(swept.calls)} calls, {len(differing)} differ", file=sys.stderr)
            for call in differing:
                for level, operands, eager, runtime in call.shown:
                    print(
                        f"    {level} {call.operator} {call.dtypes}: {operands[:100]} -> {eager} | {runtime}",
                        flush=True,
                    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edges", description=__doc__)
    parser.add_argument("--dtypes", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--only", metavar="REGEX", help="only the operators whose name matches")
    parser.add_argument("--samples", type=int, default=4, help="at most so many samples of an operator")
    parser.add_argument("--fresh", action="store_true", help="everything again")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a dozen operators")
    return parser


if __name__ == "__main__":
    sys.exit(main())
