"""Calls made one after the other: a model that writes to itself answers by what it was called with before.

A file has no memory. One that is such a model has its state as inputs and outputs, and is fed back what it gave; any
other cannot answer the same input twice as eager does, and two calls show it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.diagnostics.spelling import EXPORT, option, told
from trueport.examine.run import call_eagerly
from trueport.examine.state import Snapshot
from trueport.verify.faults.evidence import ComparedCall
from trueport.verify.faults.findings import EXAMPLE, difference_found, failure_found, input_words
from trueport.verify.fitted import Fitted
from trueport.verify.inputs.draw import draw
from trueport.verify.judging.compare import Expected, Judgement, Tolerance, judge
from trueport.verify.judging.comparing import count, dtypes_of, tolerance_of
from trueport.verify.options import Options
from trueport.verify.results import AgreedInput, CheckResult
from trueport.verify.runtime.sandbox import WorkerFailure

_OTHERS = 4


@dataclass(frozen=True)
class _Input:
    """What one call is made with, and how to speak of it."""

    values: Sequence[object]
    sizes: Mapping[str, int]
    words: str


def check_in_turn(fitted: Fitted, before: Snapshot, stateful: Sequence[str], options: Options) -> CheckResult:
    """Compare a few sequences of calls, each from the model's present state (`before`), to which it is put back.

    `stateful` names what forward writes.
    """
    check = _InTurn(fitted, before, ", ".join(f"`{name}`" for name in stateful), options)
    for sequence in _sequences(fitted, options.seed):
        check.compare(sequence)
        if check.findings:
            break
    if not check.findings and not fitted.keeps_state:
        check.findings.append(check.not_shown())
    return CheckResult(tuple(check.checked), tuple(check.findings), check.refused, seed=options.seed, kept=check.kept)


def _sequences(fitted: Fitted, seed: int) -> Iterator[list[_Input]]:
    """The example twice; another input before it; and some more."""
    example = [leaf.value for leaf in fitted.job.leaves]
    first = _Input(example, {}, EXAMPLE)
    drawn = (each for each in draw(fitted.job, example, seed) if not each.fallback)
    others = [
        _Input(each.values, each.sizes, input_words(each.sizes, each.family))
        for each in itertools.islice(drawn, _OTHERS)
    ]
    yield [first, first]
    yield from ([other, first] for other in others)
    yield [first, *others, first]


@dataclass
class _InTurn:
    fitted: Fitted
    before: Snapshot
    names: str
    options: Options
    checked: list[AgreedInput] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    refused: int = 0
    kept: Path | None = None

    def compare(self, sequence: Sequence[_Input]) -> None:
        answers = self._eager(sequence)
        if answers is None:
            self.refused += 1
            return
        calls: list[ComparedCall] = []
        state = self.fitted.state()
        worst, elements = Judgement(None), 0
        for each, expected in zip(sequence, answers, strict=True):
            feeds = {**self.fitted.feed(each.values), **state}
            calls.append(ComparedCall(feeds, expected))
            try:
                outputs = self.fitted.opened.loaded.run(feeds)
            except WorkerFailure as failure:
                self.findings.append(failure_found(failure, _words(sequence[: len(calls)]), self._evidence(calls)))
                return
            state = self.fitted.state(outputs)
            for name, right in zip(self.fitted.output_names, expected, strict=True):
                verdict = judge(right, outputs[name], self._tolerance(name, right))
                if verdict.difference is not None:
                    plain = difference_found(name, verdict.difference, each.words, ())
                    self.findings.append(self._found(plain, sequence[: len(calls)], calls))
                    return
                worst, elements = max(worst, verdict, key=lambda each: each.worst), elements + count(right)
        self.checked.append(
            AgreedInput(
                sequence[-1].sizes, f"{len(sequence)} calls in turn", elements, worst.worst, worst.allowed, 0.0, 0.0
            )
        )

    def not_shown(self) -> Diagnostic:
        """The state counts in eager, and in no sequence of calls by more than the tolerance."""
        return StateWritten(
            message=f"forward writes {self.names}, and what a call gives depends on the calls before it, of which an "
            "ONNX file remembers nothing",
            seen=(f"in {len(self.checked)} sequences of calls it made no difference beyond the tolerance",),
            severity=Severity.WARNING,
        )

    def _eager(self, sequence: Sequence[_Input]) -> list[list[Expected]] | None:
        """Eager's answers, each after the calls before it; None where it refuses one of them."""
        try:
            return [self.fitted.expected(call_eagerly(self.fitted.job, each.values)) for each in sequence]
        except Exception:  # noqa: BLE001  whatever a model raises on inputs of our making, they are none of its own
            return None
        finally:
            self.before.put_back()

    def _found(self, plain: Diagnostic, sequence: Sequence[_Input], calls: Sequence[ComparedCall]) -> Diagnostic:
        if len(calls) == 1:
            return replace(plain, seen=(*plain.seen, *self._evidence(calls)))
        lost = "and what the file makes of it is another" if self.fitted.keeps_state else "which the file does not keep"
        earlier = "the call before agrees" if len(calls) == 2 else f"the {len(calls) - 1} calls before agree"
        return StateWritten(
            message=f"call {len(calls)} differs from eager, which remembers the calls before: "
            f"forward writes {self.names}, {lost}",
            seen=(f"calls: {_words(sequence)}", f"{earlier}; then {plain.message}", *self._evidence(calls)),
            fix=told(
                "make the state an argument and a result; ",
                EXPORT,
                " with ",
                option("state", "inputs-outputs"),
                " does",
            ),
        )

    def _evidence(self, calls: Sequence[ComparedCall]) -> tuple[str, ...]:
        evidence = self.options.evidence
        if evidence is None:
            return ()
        told = evidence.kept_calls(self.fitted.opened.blame.path, calls, self.fitted.output_names)
        self.kept = told.folder
        return (told.words,)

    def _tolerance(self, name: str, expected: Expected) -> Tolerance:
        options = self.options
        return tolerance_of(name, expected, dtypes_of(self.fitted.job), options.rtol, options.atol)


def _words(sequence: Sequence[_Input]) -> str:
    return ", then ".join(each.words for each in sequence)
