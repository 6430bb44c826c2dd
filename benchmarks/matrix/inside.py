"""`python -m benchmarks.matrix.inside PART FILE`: parts whose own code runs in the venv that is tried."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.matrix.ledger import Outcome

SHARE, SAMPLES = 4, 2
"""The sample of operators: those of OpInfo with float32 whose name hashes (crc32) to 0 modulo SHARE, and the first
SAMPLES samples of each. By hash, so that an operator which a release adds does not move the others."""

LEFT_OUT = {"linalg.cond": "the check runs it at sizes for which the runtime takes a minute: the clock would decide"}


def canary() -> dict[str, Outcome]:
    """`torch_internals/contract.py`, thing by thing."""
    from trueport.torch_internals import contract

    broken = contract.broken()
    things = [*contract.names(), *(check.__name__ for check in contract.CHECKS)]
    found = {}
    for thing in things:
        moved = [what for what in broken if what.startswith((f"{thing} is missing", f"{thing}: "))]
        found[thing] = Outcome("moved", moved[0]) if moved else Outcome("holds")
    return found


def operators() -> dict[str, Outcome]:
    """Torch's own samples, with free sizes."""
    from benchmarks.ops import samples
    from benchmarks.ops.worker import Task, watched

    found = {}
    with watched(seconds=600.0) as worker:
        for name in sorted(samples.operators("float32")):
            if zlib.crc32(name.encode()) % SHARE or name in LEFT_OUT:
                continue
            for outcome in worker.run(Task(name, "float32", True, "trueport", SAMPLES)):
                verdict = " ".join(filter(None, (outcome.verdict, outcome.code)))
                found[f"{name} {outcome.sample}"] = Outcome(verdict, outcome.detail)
    return found


PARTS: Mapping[str, Callable[[], dict[str, Outcome]]] = {"canary": canary, "operators": operators}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(PARTS[sys.argv[1]]()))
