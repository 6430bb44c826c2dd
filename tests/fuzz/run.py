"""`make fuzz N=3000`: judge many programs, print the tally, keep the failing ones in a folder.

Program number i of a seed is always the same program, so a run can be stopped and resumed with --start.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

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
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    tally: Counter[str] = Counter()
    began = time.monotonic()
    for index in range(wanted.start, wanted.start + wanted.count):
        source = program(wanted.seed, index)
        outcome = _judged(source)
        tally[_label(outcome)] += 1
        if outcome.verdict.is_bug or outcome.verdict is Verdict.DIAGNOSED:
            _keep(wanted.failures, f"{wanted.seed}_{index}_{outcome.verdict.value}_{outcome.code}", source, outcome)
        if outcome.verdict.is_bug:
            print(
                f"{index}: {outcome.verdict.value} {outcome.code} {outcome.detail.strip().splitlines()[-1][:200]}",
                flush=True,
            )
        elif index % 100 == 99:
            print(f"{index + 1}: {dict(tally)}", file=sys.stderr, flush=True)
    _print(tally, time.monotonic() - began)
    return 1 if any(label.startswith((Verdict.WRONG.value, Verdict.CRASH.value)) for label in tally) else 0


def _judged(source: str) -> Outcome:
    try:
        return judge(source)
    except Exception as failure:
        return Outcome(Verdict.CRASH, f"{type(failure).__name__}: {failure}", type(failure).__name__)


def _label(outcome: Outcome) -> str:
    return f"{outcome.verdict.value} {outcome.code}".strip()


def _keep(folder: Path, name: str, source: str, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    said = "".join(f"# {line}\n" for line in outcome.detail.splitlines()[-40:])
    (folder / f"{name.replace(' ', '-')}.py").write_text(source + "\n" + said)


def _print(tally: Counter[str], seconds: float) -> None:
    total = tally.total()
    print(f"{total} programs in {seconds:.0f} s")
    for label, count in tally.most_common():
        print(f"  {label:30s} {count:6d}  {100 * count / total:5.1f} %")


if __name__ == "__main__":
    raise SystemExit(main())
