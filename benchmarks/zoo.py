"""`python -m benchmarks.zoo`: nine architectures of transformers, exported with free sizes and held against eager.

Each is compared on its example, on three other sizes and on padded masks. A diagnosis counts where it names a line of
transformers; its code tells a line that freezes a size (TP3xx) from an operator that we cannot translate (TP4xx).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks import children, results
from benchmarks.exporters import EXPORTERS, TITLES, trueport_exists
from benchmarks.judge import Judgement
from benchmarks.zoo_models import ZOO
from benchmarks.zoo_run import run_model


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    if options.exporter == "trueport" and not trueport_exists():
        print("trueport.export does not exist yet; try --exporter dynamo", file=sys.stderr)
        return 2
    children.preload(
        ["onnxscript", "benchmarks.zoo_run", *(["trueport.api"] if options.exporter == "trueport" else [])]
    )
    found: dict[str, Judgement] = {}
    for name in [options.only] if options.only else ZOO:
        found[name] = run_model(name, options.exporter, options.limit)
        print(f"{name}: {found[name].verdict} {found[name].detail}", file=sys.stderr)
    text = report(found)
    print(text)
    if options.exporter == "trueport" and not options.only:
        title = (
            f"# Architectures of transformers, exported by {TITLES[options.exporter]}\n\n`python -m benchmarks.zoo`\n"
        )
        results.keep("zoo", {name: asdict(one) for name, one in found.items()}, f"{title}\n{text}")
    return 0


def report(found: Mapping[str, Judgement]) -> str:
    rows = [
        [name, one.verdict.value, f"{one.code} {one.at}".strip(), f"{one.cpu_seconds:.1f}", one.detail[:120]]
        for name, one in found.items()
    ]
    return results.table(["model", "verdict", "code and line", "CPU s, check included", "detail"], rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=list(ZOO))
    parser.add_argument("--exporter", choices=list(EXPORTERS), default="trueport")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one model")
    return parser


if __name__ == "__main__":
    sys.exit(main())
