"""The first level of evidence: every distinct call of the model by itself, against eager, on edge operands.

Which difference is an error, and which a warning:

1. Operands are only drawn from what the model can give the call, as far as its graph tells (`ranges.py`): a declared
   range, a mask, an index, the result of a softmax.
2. Integers are exact: a difference at any of them is an error.
3. Floats: a difference at operands that a model meets every day (zero, or a magnitude from 1e-5 to 1e6) is an error. At
   magnitudes beyond, and at subnormal ones, it is a warning: nothing says that the model never comes there, and
   nothing that it does.
4. NaN and infinities: told in one line, where runtime and eager differ by design; an error with `nonfinite`. Infinities
   that the model itself makes (a mask of -inf before a softmax) are everyday operands of that call.
5. An index, a size or a divisor that eager refuses is no test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp812_call_differs import CallDiffers
from trueport.diagnostics.spelling import VALUES, told
from trueport.graph.regions import Graph
from trueport.lower.lower import CustomTable
from trueport.verify.calls.call import Call, calls_of
from trueport.verify.calls.edges import Level
from trueport.verify.calls.remembered import Memory, memory_of
from trueport.verify.calls.result import CallsChecked
from trueport.verify.calls.run import CallOutcome, Shown, run_call
from trueport.verify.runtime.onnx_program import Laboratory
from trueport.verify.runtime.sandbox import FailureKind

_WHAT_HAPPENED = {
    FailureKind.CRASH: "ends ONNX Runtime's process",
    FailureKind.HANG: "does not come back in ONNX Runtime",
    FailureKind.OUT_OF_MEMORY: "runs out of memory in ONNX Runtime",
    FailureKind.REFUSES_INPUT: "is refused by ONNX Runtime",
    FailureKind.CANNOT_LOAD: "cannot be loaded by ONNX Runtime",
}


def check_calls(
    graph: Graph,
    laboratory: Laboratory,
    opset: int,
    custom: CustomTable | None = None,
    nonfinite: bool = False,
    memory: Memory | None = None,
) -> CallsChecked:
    """Each distinct call that is not remembered, on its trials."""
    memory = memory_of() if memory is None else memory
    calls = calls_of(graph, opset, custom)
    check = _Check(graph, laboratory, memory, nonfinite, dict(calls.left_out))
    for call in calls.distinct:
        check.call(call)
    shown = list(check.shown.values())
    return CallsChecked(
        distinct=len(shown) + len(calls.left_out),
        equal=sum(state in (_State.EQUAL, _State.REMEMBERED) for state in shown),
        remembered=shown.count(_State.REMEMBERED),
        runs=check.runs,
        not_run=check.not_run,
        by_design=tuple(dict.fromkeys(check.by_design)),
        findings=tuple(check.findings),
    )


class _State(IntEnum):
    """What is known of a distinct call; of several ranges, the last of these."""

    REMEMBERED = 0
    EQUAL = 1
    NOT_RUN = 2
    DIFFERS = 3


@dataclass
class _Check:
    """One walk over the distinct calls."""

    graph: Graph
    laboratory: Laboratory
    memory: Memory
    nonfinite: bool
    not_run: dict[str, str]
    runs: int = 0
    by_design: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    shown: dict[str, _State] = field(default_factory=dict)
    _on_any_values: dict[str, tuple[_State, Sequence[Diagnostic]]] = field(default_factory=dict)

    def call(self, call: Call) -> None:
        """On any values first: what holds there need not be asked for each range."""
        if call.signature not in self._on_any_values:
            self._on_any_values[call.signature] = self._run(call.on_any_values())
        state, found = self._on_any_values[call.signature]
        if found and call.ranges:  # perhaps not where the model comes
            state, found = self._run(call)
        self.findings += [replace(each, place=call.node.place) for each in found]
        self.shown[call.signature] = max(state, self.shown.get(call.signature, state))

    def _run(self, call: Call) -> tuple[_State, Sequence[Diagnostic]]:
        signature = f"{call.signature} | {call.ranges}" if call.ranges else call.signature
        known = self.memory.agreed(signature) if call.remembered else None
        if known is not None and not (self.nonfinite and known):
            self.by_design += [known] if known else []
            return _State.REMEMBERED, ()
        outcome = run_call(call, self.laboratory, self.graph)
        self.runs += outcome.runs
        if outcome.not_run:
            self.not_run.setdefault(str(call.op), outcome.not_run)
            return _State.NOT_RUN, ()
        found, told = judged(call, outcome, self.nonfinite)
        self.by_design += [told] if told else []
        if not found and outcome.left_out:
            self.not_run.setdefault(str(call.op), outcome.left_out)
            return _State.NOT_RUN, ()
        if not found and call.remembered:
            self.memory.keep(signature, told)
        return _State.DIFFERS if found else _State.EQUAL, found


def judged(call: Call, outcome: CallOutcome, nonfinite: bool) -> tuple[Sequence[Diagnostic], str]:
    """The findings of a call, and what is to be said of NaN and infinities."""
    shown = outcome.shown
    found: list[Diagnostic] = []
    if Level.ORDINARY in shown:
        found.append(_finding(call, shown[Level.ORDINARY], _weight(shown[Level.ORDINARY])))
    elif Level.EXTREME in shown:
        found.append(_finding(call, shown[Level.EXTREME], Severity.WARNING))
    if Level.NONFINITE not in shown:
        return found, ""
    if nonfinite:
        found.append(_finding(call, shown[Level.NONFINITE], Severity.ERROR))
    last = shown[Level.NONFINITE]
    return found, f"{_name(call)} of {last.operands}: eager {last.eager}, ONNX Runtime {last.runtime}"


def _weight(shown: Shown) -> Severity:
    """The runtime that refuses says so aloud, and the sizes of a call by itself need not be the model's: a note. Where
    they are, the whole model is refused as well, which is an error."""
    refused = shown.failure is not None and shown.failure.kind is FailureKind.REFUSES_INPUT
    return Severity.NOTE if refused else Severity.ERROR


def _name(call: Call) -> str:
    return str(call.op).removesuffix(".default")


def _finding(call: Call, shown: Shown, severity: Severity) -> Diagnostic:
    name = f"`{_name(call)}`"
    if shown.failure is not None:
        message = f"{name} {_WHAT_HAPPENED[shown.failure.kind]} on operands that eager answers: {shown.runtime}"
    else:
        message = f"{name} by itself gives {shown.runtime} where eager gives {shown.eager}"
    empty = any(not tensor.numel() for tensor in shown.trial.tensors)
    where = "on empty tensors" if empty else "at magnitudes beyond everyday ones"
    rare = (f"only {where}, so this is a warning",) if severity is Severity.WARNING else ()
    return CallDiffers(
        message=message,
        place=call.node.place,
        label=f"calls {_name(call)}",
        seen=(f"operands: {shown.operands}", *rare),
        fix=told("mend the translation if it is yours; if such values never come, declare their range: ", VALUES),
        facts={"operator": str(call.op), "operands": shown.operands, "eager": shown.eager, "runtime": shown.runtime},
        severity=severity,
    )
