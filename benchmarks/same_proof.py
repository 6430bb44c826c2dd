"""`python -m benchmarks.same_proof`: is the proof the same on an idle and on a busy machine?

Each model is checked twice, in a process of its own: as it is, and beside eight processes that do nothing but compute.
All that the report says of the check is compared: inputs, sizes, errors, decisions, what was searched and not decided.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks import children, results
from benchmarks.verify_cost_run import MODELS

_BUSY = 8


def proof(name: str, *, folder: Path, phase: children.Phase) -> tuple[float, list[str]]:
    """Runs in the child: how long the check took, and what it says."""
    import trueport

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, kwargs, shapes = MODELS[name]()
    phase("check")
    report = trueport.check(model, args, kwargs=kwargs, dynamic_shapes=shapes)
    inputs = [f"{one} {one.verdict.value} {one.worst_error!r}" for one in report.checks]
    told = [*report.undecided, *map(str, report.decisions), report.partly, f"{report.endless} endless"]
    findings = [f"{found.code} {found.message}" for found in report.diagnostics]
    return report.seconds["verify"], [*inputs, *told, f"{report.searched} searched", *findings]


def _compute() -> None:
    while True:
        sum(range(10_000))


@contextmanager
def busy(count: int) -> Iterator[None]:
    others = [multiprocessing.get_context("spawn").Process(target=_compute, daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    time.sleep(2)
    try:
        yield
    finally:
        for other in others:
            other.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_proof", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", default="")
    options = parser.parse_args(arguments)
    results.circumstances()
    children.preload(["onnxscript", "trueport.api", "benchmarks.verify_cost_run"])
    rows = []
    for name in (name for name in MODELS if re.search(options.only, name)):
        idle = children.run(proof, name, limit=900)
        with busy(_BUSY):
            loaded = children.run(proof, name, limit=1800)
        if idle.died or loaded.died:
            print(f"{name}: {idle.died or loaded.died}", file=sys.stderr)
            return 1
        (alone, said), (beside, again) = idle.value, loaded.value
        same = "same" if said == again else "DIFFERENT"
        rows.append([name, len(said), f"{alone:.2f}", f"{beside:.2f}", same])
        print(*rows[-1], file=sys.stderr, flush=True)
    text = results.table(["model", "lines of proof", "check s, idle", "check s, busy", "proof"], rows)
    print(text)
    if not options.only:
        title = f"# The same proof on a busy machine\n\n{(__doc__ or '').strip()}\n"
        results.keep("same_proof", {"models": rows}, f"{title}\n{text}")
    return int(any(row[-1] != "same" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
