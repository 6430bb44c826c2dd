"""What a check is asked for, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trueport.diagnostics.base import Diagnostic
from trueport.verify.calls.result import CallsChecked
from trueport.verify.compare import Tolerance
from trueport.verify.findings import input_words
from trueport.verify.tally import Decision


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """An input on which both gave the same `elements`. `worst` is the largest error among the floats of them, and
    `allowed` what was allowed there."""

    sizes: Mapping[str, int]
    family: str
    elements: int
    worst: float
    allowed: float
    eager_seconds: float
    runtime_seconds: float

    def __str__(self) -> str:
        return input_words(self.sizes, self.family)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was compared, what was found, and how it was decided."""

    checked: tuple[CheckedInput, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    refused_by_eager: int = 0
    excused: tuple[str, ...] = ()
    """Inputs on which the two differ and eager's own answer is no firmer than that, each with the reason."""
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
    calls: CallsChecked | None = None
    """What the calls of the model have shown, each by itself; None for a file that is not of our making."""

    @property
    def agrees(self) -> bool:
        return bool(self.checked) and not any(finding.is_error for finding in self.diagnostics)

    def with_findings(self, more: Sequence[Diagnostic]) -> CheckResult:
        return replace(self, diagnostics=(*self.diagnostics, *more))

    def sizes_seen(self, name: str) -> tuple[int, ...]:
        return tuple(sorted({checked.sizes[name] for checked in self.checked if name in checked.sizes}))


@dataclass(frozen=True, slots=True)
class Budget:
    """When the search ends. What no check can do without (another input, every free size at another value) is tried as
    long as `seconds` and `attempts` allow; a handful of inputs, as long as `least_seconds` do; what goes beyond that
    ends with `further_seconds` or `further_inputs`, whichever comes first.
    """

    seconds: float = 120.0
    attempts: int = 200
    least_seconds: float = 30.0
    further_seconds: float = 1.0
    further_inputs: int = 32
    search_seconds: float = 2.0
    """For inputs that take the ways which drawn inputs did not; of no use where all are taken."""
    arms_seconds: float = 2.0
    """For the arms that no input reached, each by itself."""
    shrink_seconds: float = 3.0

    def beside(self, seconds: float) -> Budget:
        """For an export that has taken so long: the check is to cost about as much, or half a second if that is little.

        What is compared in any case is a few inputs; the shares are for what goes beyond.
        """
        return replace(
            self,
            least_seconds=min(self.least_seconds, max(0.5, seconds)),
            further_seconds=min(self.further_seconds, max(0.1, seconds / 3)),
            search_seconds=min(self.search_seconds, max(0.2, seconds / 3)),
            arms_seconds=min(self.arms_seconds, max(0.15, seconds / 3)),
        )


THOROUGH = Budget(
    seconds=600.0,
    attempts=2000,
    least_seconds=300.0,
    further_seconds=20.0,
    further_inputs=300,
    search_seconds=60.0,
    arms_seconds=60.0,
    shrink_seconds=30.0,
)
"""For who has the time: `--thorough`."""
