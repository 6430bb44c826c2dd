"""Eager judges what forward leaves in the model: attributes that it sets, and tensors that it replaces.

They are harmless where no later call depends on them, as a table that is made anew for each size. Where the first runs
of eager (`examine`) do not tell, it is called again, many times in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueport.capture.effects.state import REPLACED, StateMode
from trueport.diagnostics.base import Diagnostic, Label, Severity
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.diagnostics.spelling import option, told
from trueport.examine import Examined, remembers
from trueport.load.job import Job


def judge_state(found: Sequence[Diagnostic], job: Job, examined: Examined, choice: StateMode) -> list[Diagnostic]:
    """What a trace found, with each finding about such state as eager shows it to be."""
    written = [finding for finding in found if isinstance(finding, StateWritten)]
    found = [*found, *_unseen(written, job, examined)] if choice is StateMode.REFUSE else found
    if choice is not StateMode.REFUSE or not any(_may_be_a_cache(finding) for finding in written):
        return list(found)
    replaced = any(finding.is_error and _may_be_a_cache(finding) for finding in written)
    matters = remembers(job) if replaced and not examined.state_matters else examined.state_matters
    return [
        _judged(finding, examined, matters)
        if isinstance(finding, StateWritten) and _may_be_a_cache(finding)
        else finding
        for finding in found
    ]


def _unseen(written: Sequence[StateWritten], job: Job, examined: Examined) -> list[StateWritten]:
    """Tensors of the model that eager wrote and the trace did not: an operator wrote them that does not say so."""
    owned = {name for name, _ in (*job.model.named_buffers(), *job.model.named_parameters())}
    told_of = {finding.facts["state"] for finding in written}
    return [
        StateWritten(
            message=f"forward writes `{name}`, and an ONNX model keeps nothing between calls",
            seen=("eager left another value there; the operator that wrote it does not say that it writes",),
            fix=told(option("state", "frozen"), " keeps its present value"),
            facts={"state": name, "kind": "tensor"},
        )
        for name in examined.stateful
        if name in owned and name not in told_of
    ]


def _judged(finding: StateWritten, examined: Examined, matters: bool | None) -> StateWritten:
    if matters is False and finding.is_error:
        return StateWritten(
            message=f"forward replaces `{finding.facts['state']}`, which the graph does not keep",
            place=finding.place,
            severity=Severity.NOTE,
            seen=("eager: no call gave another result after calls with other sizes and values",),
            facts=finding.facts,
        )
    if (read := examined.counters.get(finding.facts["state"])) is not None and not finding.is_error:
        return StateWritten(
            message=f"{finding.message}; it is another one after every call, and forward looks at it",
            place=finding.place,
            also=(Label(read, "reads it"),),
            fix=told(
                "pass ",
                option("state", "frozen"),
                " to export the model as it is now, or make it an argument and a result",
            ),
            facts=finding.facts,
        )
    if matters and not finding.is_error:
        return StateWritten(
            message=f"{finding.message}; and what a call gives depends on the calls before it",
            place=finding.place,
            seen=("eager: another input first, then the example again, gave another result",),
            fix=told(
                "pass ",
                option("state", "frozen"),
                " to export the model as it is now, or make it an argument and a result",
            ),
            facts=finding.facts,
        )
    return finding


def _may_be_a_cache(finding: StateWritten) -> bool:
    return not finding.is_error or finding.facts.get("written") == REPLACED
