"""What a check says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trueport.diagnostics.base import Diagnostic
from trueport.verify.calls.result import CallsChecked
from trueport.verify.decisions.tally import Decision
from trueport.verify.faults.findings import input_words
from trueport.verify.judging.compare import Tolerance


@dataclass(frozen=True, slots=True)
class AgreedInput:
    """An input on which both gave the same `elements`. `worst` is the largest error among the floats of them, and
    `allowed` what was allowed there."""

    sizes: Mapping[str, int]
    family: str
    elements: int
    worst: float
    allowed: float
    eager_seconds: float
    runtime_seconds: float
    by_output: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By the name of an output, the largest error among its floats, and what was allowed there."""

    def __str__(self) -> str:
        return input_words(self.sizes, self.family)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was compared, what was found, and how it was decided."""

    checked: tuple[AgreedInput, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    refused_by_eager: int = 0
    undecided: tuple[str, ...] = ()
    """Inputs on which the two differ by no more than rounding explains, by the rule of `sensitivity.py`, and by more
    than would count as equal; each with the reason."""
    endless: int = 0
    """Inputs on which a loop of eager's made more rounds than a run may."""
    partly: str = ""
    """Why less was decided than usually is: the clock ended the check, or rounding decides on the example itself."""
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    own_errors: Mapping[str, float] = field(default_factory=dict)
    """By output, what was allowed besides for eager's own rounding error, where that was needed."""
    seed: int = 0
    by_distribution: bool = False
    """Whether distributions were compared, and not values: the model draws random numbers."""
    decisions: tuple[Decision, ...] = ()
    """The branches and loops of the user's code, and on how many of the inputs each way was taken."""
    searched: int = 0
    """How many inputs were tried in eager alone, to find those that take another way."""
    kept: Path | None = None
    """The folder of the counterexample, where one was kept."""
    differs_on: tuple[Sequence[object], ...] = ()
    """The input on which something was found first, one value per leaf, if it was an input that showed it."""
    calls: CallsChecked | None = None
    """What the calls of the model have shown, each by itself; None for a file that is not of our making."""

    @property
    def agrees(self) -> bool:
        return bool(self.checked) and not any(finding.is_error for finding in self.diagnostics)

    def with_findings(self, more: Sequence[Diagnostic]) -> CheckResult:
        return replace(self, diagnostics=(*self.diagnostics, *more))

    def sizes_seen(self, name: str) -> tuple[int, ...]:
        return tuple(sorted({checked.sizes[name] for checked in self.checked if name in checked.sizes}))
