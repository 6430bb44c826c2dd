"""`make fuzz N=3000`: judge many programs, print the tally, keep the failing ones in a folder.

Program number i of a seed is always the same program, so a run can be stopped and resumed with --start.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import onnxruntime

from tests.fuzz.outcome import Outcome, Verdict, judge
from tests.fuzz.programs import write_program


def program(seed: int, index: int) -> str:
    return write_program(Random(f"{seed}/{index}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--passes-off", action="store_true", help="also without passes: no verdict may be another one")
    parser.add_argument("--report", type=Path, help="write the tally there, as a page")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(3)
    tally: Counter[str] = Counter()
    others: list[str] = []
    began = time.monotonic()
    for index in range(wanted.start, wanted.start + wanted.count):
        source = program(wanted.seed, index)
        outcome = _judged(source)
        tally[_label(outcome)] += 1
        if wanted.passes_off and _label(without := _judged(source, optimize=False)) != _label(outcome):
            others.append(f"{index}: {_label(outcome)}, without passes {_label(without)}")
            print(others[-1], file=sys.stderr, flush=True)
        if outcome.verdict.is_bug or outcome.verdict is Verdict.DIAGNOSED:
            _keep(wanted.failures, f"{wanted.seed}_{index}_{outcome.verdict.value}_{outcome.code}", source, outcome)
        if outcome.verdict.is_bug:
            last = outcome.detail.strip().splitlines()[-1][:200]
            print(f"{index}: {outcome.verdict.value} {outcome.code} {last}", file=sys.stderr, flush=True)
        elif tally.total() % 100 == 0:
            print(f"{tally.total()}: {dict(tally)}", file=sys.stderr, flush=True)
    lines = _lines(tally)
    if wanted.passes_off:
        lines += [f"  without passes: {len(others)} of {tally.total()} verdicts are others", *others]
    print(f"{tally.total()} programs in {time.monotonic() - began:.0f} s", *lines, sep="\n")
    if wanted.report is not None:
        wanted.report.write_text(_page(wanted.seed, wanted.start, lines, tally.total(), time.monotonic() - began))
    return 1 if others or any(label.startswith((Verdict.WRONG.value, Verdict.CRASH.value)) for label in tally) else 0


def _judged(source: str, optimize: bool = True) -> Outcome:
    try:
        return judge(source, optimize)
    except Exception as failure:
        return Outcome(Verdict.CRASH, f"{type(failure).__name__}: {failure}", type(failure).__name__)


def _label(outcome: Outcome) -> str:
    return f"{outcome.verdict.value} {outcome.code}".strip()


def _keep(folder: Path, name: str, source: str, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    said = "".join(f"# {line}\n" for line in outcome.detail.splitlines()[-40:])
    (folder / f"{name.replace(' ', '-')}.py").write_text(source + "\n" + said)


def _lines(tally: Counter[str]) -> list[str]:
    total = tally.total()
    return [f"  {label:30s} {count:6d}  {100 * count / total:5.1f} %" for label, count in tally.most_common()]


def _page(seed: int, start: int, lines: list[str], total: int, seconds: float) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return "\n".join(
        [
            "# Random programs, exported and compared with eager",
            "",
            f"`make fuzz N={total} SEED={seed}`" + (f", from program {start} on" if start else "") + f", at {commit}:",
            f"{total} programs in {seconds / 60:.0f} minutes. Each is a small module of random control flow",
            "(tests/fuzz/programs.py), exported once and run on those inputs of tests/fuzz/outcome.py that eager",
            "accepts: eager, replay and ONNX Runtime must agree to the last bit.",
            "",
            "```",
            *lines,
            "```",
            "",
            "A diagnosed program is refused with a diagnostic at its line. `void` is one that eager itself refuses.",
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
