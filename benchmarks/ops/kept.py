"""What a sweep found, one line of JSON per operator, kept as it goes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import results
from benchmarks.ops.worker import Outcome

FOLDER = results.FOLDER / "ops"
FAITHFUL, UNMEASURABLE = "faithful", "unmeasurable"


@dataclass(frozen=True)
class Line:
    """One operator: how many samples ended how, and each that is not faithful with its reason."""

    operator: str
    counts: dict[str, int]
    other: list[list[Any]]
    """[sample, verdict, code, detail]"""
    commit: str

    @classmethod
    def of(cls, operator: str, outcomes: Sequence[Outcome]) -> Line:
        counts = dict(Counter(outcome.verdict for outcome in outcomes))
        other = [[o.sample, o.verdict, o.code, o.detail] for o in outcomes if o.verdict not in (FAITHFUL, UNMEASURABLE)]
        whys = dict.fromkeys(o.detail for o in outcomes if o.verdict == UNMEASURABLE)
        other += [[-1, UNMEASURABLE, "", why] for why in whys]
        return cls(operator, counts, other, results.circumstances()["commit"])

    @property
    def measured(self) -> int:
        return sum(self.counts.values()) - self.counts.get(UNMEASURABLE, 0)

    @property
    def faithful(self) -> int:
        return self.counts.get(FAITHFUL, 0)

    @property
    def all_faithful(self) -> bool:
        return self.faithful == self.measured

    @property
    def summary(self) -> str:
        reasons = Counter(f"{verdict} {code}".strip() for _, verdict, code, _ in self.other if verdict != UNMEASURABLE)
        return " ".join([f"{self.faithful}/{self.measured}", *(f"{count} {why}" for why, count in reasons.items())])


class Kept:
    """The lines of one variant and exporter, in a file."""

    def __init__(self, variant: str, free: bool, exporter: str) -> None:
        self.title = f"{variant}-{'free' if free else 'fixed'}" + ("" if exporter == "trueport" else f"-{exporter}")
        self.path = FOLDER / f"{self.title}.jsonl"
        self.lines: dict[str, Line] = {}
        if self.path.exists():
            for text in self.path.read_text().splitlines():
                line = Line(**json.loads(text))
                self.lines[line.operator] = line

    def has(self, operator: str) -> bool:
        return operator in self.lines

    def forget(self) -> None:
        self.lines = {}
        self.path.unlink(missing_ok=True)

    def add(self, line: Line) -> None:
        self.lines[line.operator] = line
        FOLDER.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(_text(line))

    def write(self) -> None:
        """Once per operator, in order of name: a line that was measured again replaces the one before."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(_text(self.lines[name]) for name in sorted(self.lines)))


def _text(line: Line) -> str:
    return json.dumps(vars(line), separators=(",", ":")) + "\n"
