"""After a difference: the smallest input that shows it, where it begins, whose fault it is, files to see it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trueport.diagnostics.base import Diagnostic
from trueport.load.job import Job
from trueport.rewrite.probe_runtime import Site
from trueport.source import Place, Where
from trueport.verify import evidence
from trueport.verify.blame import Blame
from trueport.verify.comparing import Comparer, Outcome
from trueport.verify.findings import difference_found, failure_found, structure_found
from trueport.verify.moves import Candidate
from trueport.verify.origin import origin_of
from trueport.verify.sandbox import FailureKind
from trueport.verify.second_opinion import second_opinion
from trueport.verify.shrink import in_words, smallest
from trueport.verify.sizes import Group
from trueport.verify.tally import Apart, apart


@dataclass(frozen=True)
class Divergence:
    """Where the exported model and the captured program part: the first operator whose value differs."""

    place: Place | None
    fact: str


Locate = Callable[[Sequence[object], bool], Divergence | None]
"""Finds where the difference begins, for one value per leaf; True for a model that does not come back from a run."""


@dataclass
class Investigation:
    """Everything that is asked about an input that failed."""

    job: Job
    comparer: Comparer
    blame: Blame
    groups: Sequence[Group]
    seconds: float
    evidence: Path | None = None
    """A folder for the counterexample; None where nothing is to be written."""
    locate: Locate | None = None
    saved: bool = False
    """Whether a counterexample has been written."""

    def of(self, failed: Candidate, on: str, outcome: Outcome, agreeing: int, not_below: int = 0) -> list[Diagnostic]:
        """The findings about an input on which the two differ, or on which one of them gave no answer. Sizes are made
        no smaller than `not_below`.
        """
        if outcome.structure:
            return [structure_found(outcome.structure, on)]
        before = self._apart(outcome)
        if outcome.failure is not None and outcome.failure.kind is not FailureKind.REFUSES_INPUT:
            facts = self.blame.of_run(outcome.failure, outcome.feeds)
            place = origin_of(self.blame.path, outcome.failure.detail)
            if outcome.failure.kind is FailureKind.HANG and self.locate is not None:
                diverged = self.locate(failed.values, True)
                place, facts = (diverged.place, (diverged.fact, *facts)) if diverged is not None else (place, facts)
            return [failure_found(outcome.failure, on, facts, place)]
        least, shown = self._least(failed, outcome, not_below)
        smallest_words = f"smallest: {in_words(self.job.leaves, least.values)}"
        if shown.failure is not None:
            blamed = self.blame.of_run(shown.failure, shown.feeds)
            facts = (smallest_words, *self._kept(shown), *before, *_agree(agreeing), *blamed)
            place = origin_of(self.blame.path, shown.failure.detail) or self._frozen_at(outcome)
            return [failure_found(shown.failure, on, facts, place)]
        named = dict(zip(self.comparer.output_names, shown.expected, strict=True))
        diverged = self.locate(least.values, False) if self.locate is not None else None
        place = diverged.place if diverged is not None else None
        facts = (smallest_words, *([diverged.fact] if diverged is not None else []), *self._kept(shown), *before)
        facts += _agree(agreeing)
        facts += self.blame.of_difference(shown.feeds, named, shown.tolerances)
        facts += second_opinion(self.blame.path, shown.feeds, named, shown.tolerances)
        return [
            difference_found(name, verdict.difference, on, facts, place or self._frozen_at(outcome))
            for name, verdict in zip(self.comparer.output_names, shown.verdicts, strict=True)
            if verdict.difference is not None
        ]

    def _least(self, failed: Candidate, outcome: Outcome, not_below: int) -> tuple[Candidate, Outcome]:
        last: dict[int, Outcome] = {}

        def still_fails(values: Sequence[object]) -> bool:
            again = self.comparer.compare(values)
            fails = again.differs if outcome.failure is None else _fails_alike(outcome, again)
            if fails:
                last[0] = again
            return fails

        groups = [replace(group, minimum=max(group.minimum, not_below)) for group in self.groups]
        least = smallest(self.job, groups, failed, still_fails, self.seconds)
        return least, last.get(0, outcome)

    def _apart(self, outcome: Outcome) -> tuple[str, ...]:
        """The decisions of the user's code that no agreeing input took: what was frozen, most likely."""
        return tuple(
            f"only this input goes another way at {found.site}: {found.fact}" for found in self._only_here(outcome)[:3]
        )

    def _only_here(self, outcome: Outcome) -> list[Apart]:
        return apart(outcome.trail, self.comparer.reference.tally.trails)

    def _frozen_at(self, outcome: Outcome) -> Place | None:
        found = self._only_here(outcome)
        return _place(found[0].site) if found else None

    def _kept(self, shown: Outcome) -> tuple[str, ...]:
        if self.evidence is None:
            return ()
        names = self.comparer.output_names
        try:
            script = evidence.save(self.evidence, self.blame.path, shown.feeds, names, shown.expected)
        except OSError as failure:
            return (f"the counterexample could not be kept: {failure.strerror or failure}",)
        self.saved = True
        return (f"to see it: python {script}",)


def _fails_alike(one: Outcome, other: Outcome) -> bool:
    return other.failure is not None and one.failure is not None and other.failure.kind is one.failure.kind


def _place(site: Site) -> Place:
    return Place((Where(site.file, site.line, site.function),))


def _agree(count: int) -> tuple[str, ...]:
    return (f"{count} other input{'s' * (count > 1)} agree{'s' * (count == 1)}",) if count else ()
