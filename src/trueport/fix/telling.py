"""What came of a search, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trueport.diagnostics.base import Diagnostic
from trueport.fix.outcome import TrialOutcome
from trueport.fix.registry import fixes_for
from trueport.fix.search import Sought
from trueport.report.text import tally


def taken(sought: Sought) -> Iterator[str]:
    """One line for each fix that holds."""
    for found, proposal in sought.state.taken:
        yield f"{found.code}{_at(found)}{proposal.says}"
        if proposal.changes:
            yield f"      note: {proposal.changes}"


def verified(outcome: TrialOutcome) -> str:
    """What stands behind a verdict."""
    return f"it exports, {tally(outcome.report.checks)}"


def held_against_before(outcome: TrialOutcome) -> str:
    """Whether eager still answers as it did before the edits."""
    kept = outcome.kept
    inputs = f"{kept.same} input{'' if kept.same == 1 else 's'}"
    if not kept.same and not kept.different:
        return "eager refused every input before, or answered at random: there is no answer to be kept"
    if not kept.different:
        return f"eager gives what it gave before on {inputs}"
    where = "at a size of 1, which was spread before" if kept.only_at_one else "otherwise"
    return f"eager gives what it gave before on {inputs}, and {where}: {kept.different}"


def in_vain(sought: Sought) -> Iterator[str]:
    """Why nothing is offered: what no fix answers, what was tried, and what waits for the rest."""
    waiting = sought.state.taken
    left = sought.after.report.errors
    for found in left:
        tried = [(proposal, why) for one, proposal, why in sought.rejected if one.code == found.code]
        if tried:
            yield f"{found.code}{_at(found)}{len(tried)} edit{'s' * (len(tried) > 1)} tried, none of them holds:"
            yield from (f"      {proposal.says}: {why}" for proposal, why in tried)
        elif fixes_for(found.code):
            yield f"{found.code}{_at(found)}no known edit fits this line; {found.fix or 'see the finding'}"
        else:
            yield f"{found.code}{_at(found)}has to be mended by hand; {found.fix or f'trueport explain {found.code}'}"
    if waiting and left:
        one = len(waiting) == 1
        yield (
            f"{len(waiting)} other finding{'' if one else 's'} would be gone with an edit, which is not offered: it "
            f"cannot be verified before {left[0].code} is mended"
        )


def _at(found: Diagnostic) -> str:
    return f" {Path(found.where.file).name}:{found.where.line}: " if found.where else ": "
