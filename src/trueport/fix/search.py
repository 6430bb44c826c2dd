"""Looks for the edits with which a model exports faithfully, and believes none that was not tried.

Fixes propose; the edited copy is checked in a process of its own. A proposal is taken where its finding is gone, the
model still runs, and eager gives what it gave before (unless to change that is the point of it). Findings of a later
stage show up once those of an earlier one are gone, so it goes on, round by round, on the edited text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.fix.case import Case, Proposal
from trueport.fix.command import Command
from trueport.fix.edit import Edit, EditsOverlap, FileChange, SourceFile, applied
from trueport.fix.outcome import Trial, TrialOutcome
from trueport.fix.registry import fixes_for
from trueport.fix.writing import is_installed
from trueport.source import Where

MOST_TRIALS = 24
"""Each trial is an export and its check."""
_STAGES = ["TP001", "TP005", "TP003", "TP002", "TP004"]
"""Findings after which nothing else is looked at, in the order in which they are: what shows up after an edit is
progress where it is of a later stage, and damage where it is of an earlier one."""

Attempt = tuple[Diagnostic, Proposal]
Key = tuple[object, ...]


@dataclass(frozen=True)
class SearchState:
    """The source and the command as they would be, and why."""

    command: Command
    files: dict[Path, SourceFile] = field(default_factory=dict)
    taken: tuple[Attempt, ...] = ()

    def source(self, path: Path) -> SourceFile:
        return self.files[path] if path in self.files else SourceFile.read(path)

    def with_(self, attempts: Sequence[Attempt]) -> SearchState:
        """The state after these proposals. Raises EditsOverlap where they cannot be made together."""
        edits = [edit for _, proposal in attempts for edit in proposal.edits]
        files = {path: applied(self.source(path), edits) for path in {edit.path for edit in edits}}
        command = self.command
        for _, proposal in attempts:
            if proposal.command is not None and proposal.command != command:
                if command != self.command:
                    raise EditsOverlap("two fixes want to change the command")
                command = proposal.command
        return SearchState(command, {**self.files, **files}, (*self.taken, *attempts))


@dataclass(frozen=True)
class Sought:
    """What came of the search. The edits are to be offered only where `after` is faithful."""

    before: TrialOutcome
    after: TrialOutcome
    state: SearchState
    asked: Command
    rejected: tuple[tuple[Diagnostic, Proposal, str], ...] = ()
    """Proposals that were tried in vain, each with the reason."""

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return tuple(FileChange(SourceFile.read(path), source) for path, source in sorted(self.state.files.items()))

    @property
    def found_a_way(self) -> bool:
        return bool(self.state.taken) and self.after.faithful


def find_fixes(command: Command, trial: Trial) -> Sought:
    """Try fixes until the model exports faithfully and no finding is left that a fix answers."""
    return _Search(command, trial).run()


class _Search:
    def __init__(self, command: Command, trial: Trial) -> None:
        self._asked, self._trial = command, trial
        self._trials = 0
        self._tried: set[Key] = set()
        self._rejected: list[tuple[Diagnostic, Proposal, str]] = []

    def run(self) -> Sought:
        state = SearchState(self._asked)
        before = outcome = self._try(state)
        while self._trials < MOST_TRIALS:
            chosen = self._choose(state, outcome)
            if not chosen:
                break
            state, outcome = self._round(state, outcome, chosen)
        return Sought(before, outcome, state, self._asked, tuple(self._rejected))

    def _try(self, state: SearchState) -> TrialOutcome:
        self._trials += 1
        return self._trial(state.files, state.command)

    def _choose(self, state: SearchState, outcome: TrialOutcome) -> list[Attempt]:
        """For each finding the next proposal, as far as they can be made together. Errors first, then warnings."""
        for weight in (Severity.ERROR, Severity.WARNING):
            chosen: list[Attempt] = []
            for found in outcome.report.diagnostics:
                if found.weight is not weight:
                    continue
                for proposal in self._proposals(state, outcome, found):
                    try:
                        state.with_([*chosen, (found, proposal)])
                    except EditsOverlap:
                        continue
                    chosen.append((found, proposal))
                    break
            if chosen or (weight is Severity.ERROR and outcome.report.errors):
                return chosen
        return []

    def _proposals(self, state: SearchState, outcome: TrialOutcome, found: Diagnostic) -> Iterator[Proposal]:
        case = _case(state, outcome, found)
        if case is None:
            return
        for fix in fixes_for(found.code):
            for proposal in fix.proposals(case):
                if _key(case, proposal) not in self._tried and not _touches_a_library(proposal):
                    yield proposal

    def _round(
        self, state: SearchState, outcome: TrialOutcome, chosen: list[Attempt]
    ) -> tuple[SearchState, TrialOutcome]:
        """Take the chosen proposals together, or, where that fails, those of them that hold by themselves."""
        together = state.with_(chosen)
        after = self._try(together)
        why = _why_not(outcome, after, state, chosen)
        if not why:
            return together, after
        if len(chosen) == 1:
            self._reject(state, outcome, chosen[0], why)
            return state, outcome
        for attempt in chosen:
            if self._trials >= MOST_TRIALS:
                break
            alone = state.with_([attempt])
            after = self._try(alone)
            why = _why_not(outcome, after, state, [attempt])
            if why:
                self._reject(state, outcome, attempt, why)
            else:
                return alone, after  # the others are chosen again from what is left
        return state, outcome

    def _reject(self, state: SearchState, outcome: TrialOutcome, attempt: Attempt, why: str) -> None:
        case = _case(state, outcome, attempt[0])
        assert case is not None
        self._tried.add(_key(case, attempt[1]))
        self._rejected.append((*attempt, why))


def _case(state: SearchState, outcome: TrialOutcome, found: Diagnostic) -> Case | None:
    """None where there is no source of the user's to look at."""
    where = found.where or outcome.forward
    if where is not None and where.is_installed:
        where = outcome.target
    if where is None or not where.readable:
        return None
    try:
        source = state.source(Path(where.file).resolve())
        source.tree  # noqa: B018  what cannot be parsed has no spans
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return Case(found, where, source, outcome.scene, state.command, state.source, outcome.forward, outcome.target)


def _key(case: Case, proposal: Proposal) -> Key:
    """What makes a proposal the same one in a later round: lines may have moved, their text has not."""
    lines = case.source.text.splitlines()
    line = lines[case.where.line - 1].strip() if case.where.line <= len(lines) else ""
    texts = tuple(edit.text for edit in proposal.edits)
    command = proposal.command.text("") if proposal.command else ""
    return case.found.code, case.found.message, line, proposal.says, texts, command


def _touches_a_library(proposal: Proposal) -> bool:
    return any(is_installed(edit.path) for edit in proposal.edits)


def _why_not(before: TrialOutcome, after: TrialOutcome, state: SearchState, attempts: Sequence[Attempt]) -> str:
    """Why these proposals are not to be taken; '' where they are."""
    for found, _ in attempts:
        if _still_there(found, after, state, attempts):
            return f"{found.code} stays"
    reached = min(_stage(found) for found, _ in attempts)
    known = {found.code for found in before.report.errors}
    broken = [one for one in after.report.errors if _stage(one) < reached and one.code not in known]
    if broken:
        return f"the edited model does not run: {broken[0].message}"
    made = [proposal for _, proposal in (*state.taken, *attempts)]
    excused = after.kept.only_at_one and any(proposal.spread for proposal in made)
    if after.kept.different and not excused and not any(proposal.changes for proposal in made):
        return f"eager gives another answer than before: {after.kept.different}"
    if before.report.ok and not after.report.ok:
        return f"the model does not export any more: {after.report.errors[0].message}"
    return ""


def _stage(found: Diagnostic) -> int:
    return _STAGES.index(found.code) if found.code in _STAGES else len(_STAGES)


def _still_there(found: Diagnostic, after: TrialOutcome, state: SearchState, attempts: Sequence[Attempt]) -> bool:
    same = [one for one in after.report.diagnostics if (one.code, one.weight) == (found.code, found.weight)]
    if found.where is None:
        return any(one.message == found.message for one in same)
    line = moved(found.where, state, [edit for _, proposal in attempts for edit in proposal.edits])
    return any(one.where is not None and (one.where.file, one.where.line) == (found.where.file, line) for one in same)


def moved(where: Where, state: SearchState, edits: Sequence[Edit]) -> int:
    """The number that a line has after the edits."""
    path = Path(where.file).resolve()
    mine = {edit for edit in edits if edit.path == path}
    if not mine:
        return where.line
    source = state.source(path)
    start = source.line_start(where.line)
    before = [edit for edit in mine if edit.end <= start]
    return where.line + sum(edit.text.count("\n") - source.text.count("\n", edit.start, edit.end) for edit in before)
