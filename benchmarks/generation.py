"""`python -m benchmarks.generation`: models of transformers exported with their cache, and what they generate.

Each model is exported by `trueport.generation.export`, with its ordinary check and its proof: 32 greedy tokens equal to
`generate()` in eager, for 1 and for 3 rows with padding on the left (for those with an encoder, in its text), the
prompt in one piece (7) and in three (3+1+3), the cache from empty. Then one token is measured, in one thread, at 256
tokens of past (64 of source): by eager inside `generate()`, by the exported step, and by the same model exported
without a cache, which reads the whole text each time; the processor's time, the best of 24 tokens. `genai` is ONNX
Runtime GenAI on the same folder, without a check of ours; it has no second reading of the text, as Phi-3's `generate()`
has.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks import children, results
from benchmarks.generation_models import CONFIGS
from benchmarks.generation_run import Row, genai, measure

_LIMIT = 600.0


def table(rows: Sequence[tuple[Row, str]]) -> str:
    header = ["model", "tokens equal", "logits within", "ties", "read again at", "genai, 1 row"]
    header += ["export, proof (s)", "eager ms", "step ms", "no cache ms", "eager / step", "no cache / step"]
    shown = results.table(header, [_cells(row, other) for row, other in rows])
    return "\n".join([shown, *(f"\nOpen: {row.model}: {row.failed}" for row, _ in rows if row.failed)])


def _cells(row: Row, other: str) -> list[str]:
    if row.failed:
        return [row.model, "open", *["-"] * 10]
    shares = [f"{row.eager / row.cached:.1f}", f"{row.cacheless / row.cached:.1f}"]
    times = [f"{row.eager:.2f}", f"{row.cached:.2f}", f"{row.cacheless:.2f}"]
    return [
        row.model,
        row.tokens,
        f"{row.worst:.1e}",
        str(row.ties),
        row.anew or "-",
        other,
        f"{row.seconds:.1f}",
        *times,
        *shares,
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__)
    parser.add_argument("--only", metavar="REGEX")
    options = parser.parse_args(arguments)
    results.circumstances()
    children.preload(["transformers", "trueport.api", "benchmarks.generation_run"])
    rows: list[tuple[Row, str]] = []
    for name in CONFIGS:
        if options.only and not re.search(options.only, name):
            continue
        ending = children.run(measure, name, limit=_LIMIT)
        row = (
            Row(name, 0, "", 0, 0, "", 0, 0, 0, f"{ending.last_phase}: {ending.died}") if ending.died else ending.value
        )
        other = children.run(genai, name, limit=_LIMIT)
        why = other.died.strip().splitlines()[-1] if other.died else other.value
        rows.append((row, why))
        print(row, why, file=sys.stderr, flush=True)
    print(table(rows))
    if not options.only:
        title = f"# Generation\n\n{(__doc__ or '').strip()}\n"
        content = {"models": [{**asdict(row), "genai": other} for row, other in rows]}
        results.keep("generation", content, f"{title}\n{table(rows)}")
    return int(any(row.failed for row, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
