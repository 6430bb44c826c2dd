"""`python -m benchmarks.matrix --torch 2.12 2.13`: each in a throw-away venv, and what differs from the reference.

Each part of each setting is kept in `build/matrix/ledger.json` when it is done: a run that was interrupted goes on
where it stopped. `results/matrix.md` is written from that file after each part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from benchmarks import results
from benchmarks.matrix import page, runtimes
from benchmarks.matrix.ledger import Ledger, Row
from benchmarks.matrix.parts import parts_of
from benchmarks.matrix.venvs import Setting, dependencies, with_torch


def measure(setting: Setting, ledger: Ledger, only: Sequence[str] | None, fresh: bool) -> None:
    wanted = {part: run for part, run in parts_of(setting).items() if only is None or part in only}
    todo = {part: run for part, run in wanted.items() if fresh or ledger.get(setting.title, part) is None}
    if not todo:
        return
    _say(f"{setting.title}: a venv")
    with with_torch(setting) as venv:
        packages = ["torch", *(requirement.name for requirement in dependencies() if requirement.name != "torch")]
        versions = {"python": setting.python, **{name: venv.version(name) for name in packages}}
        for part, run in todo.items():
            _say(f"{setting.title}: {part}")
            row = Row(setting.title, part, run(venv), versions, results.circumstances()["commit"])
            ledger.keep(row)
            page.write(ledger)
            _say(f"{setting.title}: {part}: {page.counts(row)}")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    ledger = Ledger()
    for release in options.torch:
        measure(Setting(release, options.python), ledger, options.parts, options.fresh)
    if options.lowest:
        measure(Setting(page.REFERENCE.torch, options.python, lowest=True), ledger, options.parts, options.fresh)
    if options.runtimes:
        runtimes.measure(options.runtimes, ledger, options.fresh)
    page.write(ledger)
    return 0


def _say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matrix", description=__doc__)
    parser.add_argument("--torch", nargs="*", default=[], metavar="2.13", help="minor releases of torch")
    parser.add_argument("--python", default=page.REFERENCE.python, metavar="3.12")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions of all other dependencies")
    parser.add_argument(
        "--runtimes", nargs="*", default=[], metavar="1.17", help="releases of onnxruntime, or `newest`"
    )
    parser.add_argument("--parts", nargs="+", help="only these parts")
    parser.add_argument("--fresh", action="store_true", help="also what is in the ledger")
    return parser


if __name__ == "__main__":
    sys.exit(main())
