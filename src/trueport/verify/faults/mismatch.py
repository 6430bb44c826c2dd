"""After a difference: the smallest input that shows it, where it begins, whose fault it is, files to see it with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from trueport.diagnostics.base import Diagnostic
from trueport.load.job import Job, sizes_in
from trueport.rewrite.running.probe_runtime import Site
from trueport.source import Place, Where
from trueport.verify.decisions.tally import Apart, apart
from trueport.verify.decisions.trail import Trail
from trueport.verify.faults.blame import Blame
from trueport.verify.faults.evidence import ComparedCall, Evidence
from trueport.verify.faults.findings import difference_found, failure_found, structure_found
from trueport.verify.faults.shrink import in_words, smallest
from trueport.verify.inputs.draw import Room
from trueport.verify.inputs.moves import Candidate
from trueport.verify.inputs.sizes import Group, ratios_of
from trueport.verify.judging.comparing import Comparer, InputOutcome
from trueport.verify.judging.second_opinion import second_opinion
from trueport.verify.runtime.origin import made_at, origin_of
from trueport.verify.runtime.sandbox import FailureKind, WorkerFailure

_OTHERS = 8
_TIMES_EAGER = 5
ONLY_HERE = "only_here"
"""Of a finding's facts, the line of a decision which the file seems to have lost."""


@dataclass(frozen=True)
class Divergence:
    """Where the exported model and the captured program part: the first operator whose value differs."""

    place: Place | None
    fact: str
    fix: str | None = None
    """What to do about it, where it is no fault of a translation."""


class Locate(Protocol):
    """Finds where a difference begins."""

    def __call__(self, values: Sequence[object], agreeing: Sequence[object] | None, hangs: bool) -> Divergence | None:
        """`values` fail, `agreeing` is an input that does not (one value per leaf); `hangs` is for a model that does
        not come back from its run."""


@dataclass
class Investigation:
    """Everything that is asked about an input that failed."""

    job: Job
    comparer: Comparer
    blame: Blame
    groups: Sequence[Group]
    units: int
    """Of work that may be spent on making the input smaller."""
    evidence: Evidence | None = None
    """Where the counterexample is to be kept; None where nothing is to be written."""
    locate: Locate | None = None
    others: Callable[[], Iterable[Candidate]] = tuple
    """Other inputs, for a model that failed before any was compared."""
    explains: bool = True
    """Whether an error is looked into at all."""
    kept: Path | None = None
    """The folder of the counterexample, once it has been written."""
    _trails: list[Trail] = field(default_factory=list)
    """Of other inputs that agree, where none was compared before."""

    def of(
        self, failed: Candidate, on: str, outcome: InputOutcome, agreeing: Sequence[Candidate], not_below: int = 0
    ) -> list[Diagnostic]:
        """The findings about an input on which the two differ, or on which one of them gave no answer. Sizes are made
        no smaller than `not_below`.
        """
        if outcome.structure:
            place = next(filter(None, map(self._made_at, self.comparer.output_names)), None)
            return [structure_found(outcome.structure, on, self._frozen_at(outcome) or place)]
        if outcome.failure is not None and outcome.failure.kind is not FailureKind.REFUSES_INPUT:
            return [self._of_death(failed, on, outcome.failure, outcome)]
        agreeing = agreeing or self._agreeing_others()
        least, shown = self._least(failed, outcome, not_below)
        where = self._apart(outcome)
        lost_at = {ONLY_HERE: str(self._only_here(outcome)[0].site)} if where else {}
        how_many = _agree(len(agreeing))
        small = f"smallest: {in_words(self.job.leaves, least.values)}"
        if shown.failure is not None:
            origin = origin_of(self.blame.path, shown.failure.detail)
            blamed = (*origin.facts, *self.blame.of_run(shown.failure, shown.feeds))
            facts = (small, *self._kept(shown), *where, *how_many, *blamed)
            lost = self._frozen_at(outcome)
            place = lost if lost is not None and self._is_foreign else origin.place or lost
            return [replace(failure_found(shown.failure, on, facts, place), facts=lost_at)]
        diverged = self._diverged(least, outcome, agreeing)
        begins = () if diverged is None else (diverged.fact,)
        fix = None if diverged is None else diverged.fix
        facts = (small, *begins, *self._kept(shown), *where, *how_many, *self._whose_fault(shown))
        place = (diverged.place if diverged is not None else None) or self._frozen_at(outcome)
        found = [
            replace(
                difference_found(name, verdict.difference, on, facts, place or self._made_at(name), fix), facts=lost_at
            )
            for name, verdict in zip(self.comparer.output_names, shown.verdicts, strict=True)
            if verdict.difference is not None
        ]
        return _told_once(found)

    def of_error(
        self, failed: Candidate, on: str, outcome: InputOutcome, agreeing: Sequence[Candidate], not_below: int
    ) -> list[Diagnostic]:
        """The same for what ends the export: only that there is an error, where nobody will read what it says."""
        if self.explains:
            return self.of(failed, on, outcome, agreeing, not_below)
        if outcome.structure:
            return [structure_found(outcome.structure, on, None)]
        if outcome.failure is not None:
            return [failure_found(outcome.failure, on, (), None)]
        return [
            difference_found(name, verdict.difference, on, ())
            for name, verdict in zip(self.comparer.output_names, outcome.verdicts, strict=True)
            if verdict.difference is not None
        ]

    def _agreeing_others(self) -> list[Candidate]:
        """Where the example itself fails: is everything wrong, or are there inputs that agree?"""
        others = itertools.islice(self.others(), _OTHERS)
        compared = [(other, self.comparer.compare(other.values)) for other in others]
        agreeing = [(other, outcome) for other, outcome in compared if outcome.equal]
        self._trails = [outcome.trail for other, outcome in agreeing if other.is_telling]
        return [other for other, _ in agreeing]

    def _of_death(self, failed: Candidate, on: str, failure: WorkerFailure, outcome: InputOutcome) -> Diagnostic:
        """A crash, a hang or a flood of memory is not repeated to make it smaller."""
        facts = (*self._kept(outcome), *self.blame.of_run(failure, outcome.feeds))
        place = origin_of(self.blame.path, failure.detail).place
        if failure.kind is FailureKind.HANG and self.locate is not None:
            diverged = self.locate(failed.values, None, hangs=True)
            if diverged is not None:
                place, facts = diverged.place, (diverged.fact, *facts)
        return failure_found(failure, on, facts, place)

    def _diverged(self, least: Candidate, outcome: InputOutcome, agreeing: Sequence[Candidate]) -> Divergence | None:
        """Where a file has lost a decision of the user's, that is where it begins, and not at what runs after it."""
        if self.locate is None or (self._is_foreign and self._only_here(outcome)):
            return None
        known = next((each.values for each in agreeing if each.is_telling), None)
        return self.locate(least.values, known, hangs=False)

    def _whose_fault(self, shown: InputOutcome) -> tuple[str, ...]:
        named = dict(zip(self.comparer.output_names, shown.expected, strict=True))
        return (
            *self.blame.of_difference(shown.feeds, named, shown.tolerances),
            *second_opinion(self.blame.path, shown.feeds, named, shown.tolerances),
        )

    def _least(self, failed: Candidate, outcome: InputOutcome, not_below: int) -> tuple[Candidate, InputOutcome]:
        shown = [outcome]

        def still_fails(values: Sequence[object]) -> bool:
            again = self.comparer.compare(values)
            fails = again.differs if outcome.failure is None else _fails_alike(outcome, again)
            if fails:
                shown.append(again)
            return fails

        groups = [replace(group, minimum=max(group.minimum, not_below)) for group in self.groups]
        room = Room(self.job.leaves, [leaf.value for leaf in self.job.leaves])
        work = self.comparer.reference.work

        def cost(values: Sequence[object]) -> float:
            """Eager is asked several times, since each difference might be one of rounding."""
            sizes = sizes_in(self.job.leaves, values)
            return _TIMES_EAGER * work.compared(room.share(sizes), ratios_of(self.groups, sizes))

        least = smallest(self.job, groups, failed, still_fails, cost, self.units)
        return least, shown[-1]

    def _apart(self, outcome: InputOutcome) -> tuple[str, ...]:
        """The decisions of the user's code that no agreeing input took: what was frozen, most likely."""
        return tuple(
            f"only this input goes another way at {found.site}: {found.fact}" for found in self._only_here(outcome)[:3]
        )

    @property
    def _is_foreign(self) -> bool:
        """Whether nobody can tell which decisions the file has kept."""
        return self.comparer.reference.tally.kept_alive is None

    def _only_here(self, outcome: InputOutcome) -> list[Apart]:
        return apart(outcome.trail, self.comparer.reference.tally.trails or self._trails)

    def _frozen_at(self, outcome: InputOutcome) -> Place | None:
        found = self._only_here(outcome)
        return _place(found[0].site) if found else None

    def _made_at(self, output: str) -> Place | None:
        """The line that made an output: where nothing tells at which operator a difference began."""
        return made_at(self.blame.path, output)

    def _kept(self, shown: InputOutcome) -> tuple[str, ...]:
        if self.evidence is None:
            return ()
        told = self.evidence.kept(
            self.blame.path, ComparedCall(shown.feeds, shown.expected), self.comparer.output_names
        )
        self.kept = told.folder
        return (told.words,)


def _told_once(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Several outputs that differ on one input have one cause, as far as anybody can tell: the first is the finding,
    and the others are among what was seen."""
    told: dict[type[Diagnostic], list[Diagnostic]] = {}
    for each in found:
        told.setdefault(type(each), []).append(each)
    kept = []
    for first, *others in told.values():
        more = (f"also: {'; '.join(each.message for each in others)}",) if others else ()
        kept.append(replace(first, seen=(*first.seen[:1], *more, *first.seen[1:])))
    return kept


def _fails_alike(one: InputOutcome, other: InputOutcome) -> bool:
    return other.failure is not None and one.failure is not None and other.failure.kind is one.failure.kind


def _place(site: Site) -> Place:
    return Place((Where(site.file, site.line, site.function),))


def _agree(count: int) -> tuple[str, ...]:
    return (f"{count} other input{'s' * (count > 1)} agree{'s' * (count == 1)}",) if count else ()
