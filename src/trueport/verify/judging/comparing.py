"""One input through eager and through the runtime, and how their answers compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import TrueportError, UsageError
from trueport.load.job import Job
from trueport.torch_internals import write_count
from trueport.verify.decisions.trail import Trail
from trueport.verify.judging.compare import (
    DifferenceKind,
    Expected,
    Judgement,
    Tolerance,
    as_float64,
    judge,
    tolerance_for,
)
from trueport.verify.judging.equals import FirstOfEquals
from trueport.verify.judging.reference import Reference
from trueport.verify.judging.rounding import Overflow
from trueport.verify.judging.sensitivity import excuse
from trueport.verify.judging.steps import Answers, judged_by_steps
from trueport.verify.judging.yardstick import Rejudged, rejudged
from trueport.verify.runtime.sandbox import Limits, LoadedModel, WorkerFailure
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, as_pairs, to_torch

Allowed = float | Mapping[str, float] | None
"""A tolerance of the user's own: for all outputs, or by the name of the output."""
Feed = Callable[[Sequence[object]], dict[str, TensorData]]
"""What to hand to the runtime for one value per leaf."""


@dataclass(frozen=True)
class InputOutcome:
    """What became of one input. Nothing but `refused` is said of one that eager refuses."""

    trail: Trail
    refused: bool = False
    structure: str = ""
    """How eager's own result differs in structure from the example's."""
    failure: WorkerFailure | None = None
    excuse: str = ""
    expected: tuple[Expected, ...] = ()
    got: tuple[RuntimeValue, ...] = ()
    feeds: Mapping[str, TensorData] = field(default_factory=dict)
    tolerances: tuple[Tolerance, ...] = ()
    verdicts: tuple[Judgement, ...] = ()
    eager_seconds: float = 0.0
    runtime_seconds: float = 0.0
    other_path: bool = False
    """Whether it is equal to what eager gives with autograd on, and not to what it gives without."""

    @property
    def differs(self) -> bool:
        return not self.excuse and any(verdict.difference is not None for verdict in self.verdicts)

    @property
    def differs_in_nothing(self) -> bool:
        """Whether all that differs is the shape or the dtype of results that have no element on either side."""
        return self._differs_in_nothing(DifferenceKind.SHAPE, DifferenceKind.DTYPE)

    @property
    def differs_in_dtype_of_nothing(self) -> bool:
        return self._differs_in_nothing(DifferenceKind.DTYPE)

    def _differs_in_nothing(self, *kinds: DifferenceKind) -> bool:
        if self.failure is not None or self.structure or not self.differs:
            return False
        return all(
            verdict.difference is None
            or (
                verdict.difference.kind in kinds
                and count(expected) == 0
                and all(0 in item.shape for item in (got if isinstance(got, tuple) else (got,)))
            )
            for expected, got, verdict in zip(self.expected, self.got, self.verdicts, strict=True)
        )

    @property
    def equal(self) -> bool:
        return bool(self.verdicts or not self.expected) and not (
            self.refused or self.structure or self.failure or self.excuse or self.differs
        )

    @property
    def share_that_differs(self) -> float:
        """Of the elements of the output that differs most."""
        found = [verdict.difference for verdict in self.verdicts if verdict.difference is not None]
        return max((each.wrong / each.count if each.count else 1.0 for each in found), default=0.0)

    @property
    def worst(self) -> tuple[float, float]:
        """The largest error, and what was allowed there."""
        verdict = max(self.verdicts, key=lambda verdict: verdict.worst, default=Judgement(None))
        return verdict.worst, verdict.allowed

    def errors(self, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        """By output, its largest error, and what was allowed there."""
        return {name: (each.worst, each.allowed) for name, each in zip(names, self.verdicts, strict=True)}

    @property
    def elements(self) -> int:
        return sum(count(value) for value in self.expected)


@dataclass(slots=True)
class _Answer:
    """What either side gives for one input. The values are kept, so that nothing else has their id."""

    values: Sequence[object]
    expected: list[Expected] | None
    trail: Trail
    endless: int
    """1 where eager did not come back."""
    writes: Sequence[int | None]
    """How often each tensor of eager's had been written when eager gave it."""
    seconds: tuple[float, float]
    feeds: Mapping[str, TensorData] = field(default_factory=dict)
    outputs: Mapping[str, RuntimeValue] | WorkerFailure | None = None


@dataclass
class Comparer:
    """Compares a loaded model with eager, one input at a time."""

    reference: Reference
    loaded: LoadedModel
    feed: Feed
    output_names: tuple[str, ...]
    limits: Limits
    working: tuple[torch.dtype, ...]
    seed: int = 0
    rtol: Allowed = None
    atol: Allowed = None
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    steps: Answers | None = None
    """What a model that rounds to steps gives where its roundings fall otherwise."""
    own_errors: dict[str, float] = field(default_factory=dict)
    """By output, what was allowed besides for eager's own rounding, where that was needed."""
    dtypes: dict[str, torch.dtype] = field(default_factory=dict)
    """Of the tensors that eager gave for each output."""
    asks_ahead: bool = True
    _ahead: dict[int, _Answer] = field(default_factory=dict)
    """By the id of the values."""

    def compare(self, values: Sequence[object], is_example: bool = False) -> InputOutcome:
        """Raises only what eager raises on the example."""
        try:
            answer = self._answered_ahead(values) or self._eager(values, is_example)
        except TrueportError as mismatch:
            return InputOutcome(Trail(), structure=f"eager returns another structure than on the example: {mismatch}")
        trail, given = answer.trail, answer.expected
        if given is None:
            return InputOutcome(trail, refused=True)
        if len(given) != len(self.output_names):
            told = f"eager returns {len(given)} values, the model has {len(self.output_names)} outputs"
            return InputOutcome(trail, structure=told)
        if answer.outputs is None:
            self._run(answer)
        feeds, outputs, eager_seconds, runtime_seconds = answer.feeds, answer.outputs, *answer.seconds
        if isinstance(outputs, WorkerFailure):
            return InputOutcome(trail, failure=outputs, feeds=feeds, expected=tuple(given))
        assert outputs is not None
        got = tuple(outputs[name] for name in self.output_names)
        expected = [self._as_before(*each) for each in zip(self.output_names, given, strict=True)]
        tolerances = tuple(self._tolerance(*each) for each in zip(self.output_names, expected, strict=True))
        verdicts = tuple(judge(*each) for each in zip(expected, got, tolerances, strict=True))
        reason, other_path = "", False
        if _any_differs(verdicts) and (settled := self._among_equals(values, got, tolerances)) is not None:
            expected, verdicts = settled
        if self.steps is not None and _only_floats_differ(verdicts, expected):
            verdicts = judged_by_steps(expected, self.steps(values), got, tolerances)
        elif _only_floats_differ(verdicts, expected):
            again = self._beside_float64(values, trail, expected, got, tolerances)
            if again is not None:
                verdicts, reason = again.verdicts, again.excuse
        if _any_differs(verdicts):
            other = self._otherwise(values, got, tolerances)
            if other is not None:
                expected, verdicts, other_path = *other, True
        if _any_differs(verdicts):
            reason = (
                reason
                or self._overflow(values, expected, is_example)
                or self._overflows_too(values, expected, got, tolerances)
                or self._uncertain(values, expected, got, tolerances)
                or ""
            )
        return InputOutcome(
            trail,
            excuse=reason,
            expected=tuple(expected),
            got=got,
            feeds=feeds,
            tolerances=tolerances,
            verdicts=verdicts,
            eager_seconds=eager_seconds,
            runtime_seconds=runtime_seconds,
            other_path=other_path,
        )

    def answer_ahead(self, several: Sequence[Sequence[object]]) -> None:
        """What both sides give for inputs that are about to be compared, asked in one go: each message to another
        process and back takes longer than a small model. Nothing is judged, and nothing counts that is not compared.
        """
        endless, late, answers = self.reference.endless, self.reference.out_of_time, list[_Answer]()
        with suppress(TrueportError):  # it shows again, where it is told
            answers += [self._eager(values) for values in several]
        self.reference.endless, is_late = endless, self.reference.out_of_time > late
        self.reference.out_of_time = late
        if is_late:
            self.asks_ahead = False
            return
        asked = [each for each in answers if each.expected is not None and len(each.expected) == len(self.output_names)]
        began, inputs = time.monotonic(), [self.feed(each.values) for each in asked]
        patience = max(self.limits.run_seconds, 20 * sum(each.seconds[0] for each in asked))
        try:
            outputs = self.loaded.run_each(inputs, patience) if asked else []
        except WorkerFailure:  # of one of them: each by itself, then
            self.asks_ahead = False
            return
        seconds = (time.monotonic() - began) / max(len(asked), 1)
        for answer, feeds, output in zip(asked, inputs, outputs, strict=True):
            answer.feeds, answer.outputs, answer.seconds = feeds, output, (answer.seconds[0], seconds)
        self._ahead = {id(each.values): each for each in answers}  # what is left of those before will not be tried

    def knows(self, values: Sequence[object]) -> bool:
        return id(values) in self._ahead

    def _answered_ahead(self, values: Sequence[object]) -> _Answer | None:
        """Unless a later call has written over the answer: a model may hand out the same tensor each time."""
        answer = self._ahead.pop(id(values), None)
        if answer is None or answer.writes != _writes(answer.expected):
            self.asks_ahead = self.asks_ahead and answer is None
            return None
        self.reference.endless += answer.endless
        return answer

    def _eager(self, values: Sequence[object], is_example: bool = False) -> _Answer:
        began, endless = time.monotonic(), self.reference.endless
        expected, trail = self.reference.answer(values, is_example)
        seconds = (time.monotonic() - began, 0.0)
        return _Answer(values, expected, trail, self.reference.endless - endless, _writes(expected), seconds)

    def _run(self, answer: _Answer) -> None:
        began, answer.feeds = time.monotonic(), self.feed(answer.values)
        try:
            seconds = max(self.limits.run_seconds, 20 * answer.seconds[0])
            answer.outputs = self.loaded.run(answer.feeds, seconds=seconds)
        except WorkerFailure as failure:
            answer.outputs = failure
        answer.seconds = (answer.seconds[0], time.monotonic() - began)

    def _as_before(self, name: str, expected: Expected) -> Expected:
        """The 0 that a sum begins with is what eager gives where there is nothing to add; an output of floats on other
        inputs is a float then, too. A Python number has no dtype of its own.
        """
        if isinstance(expected, torch.Tensor):
            self.dtypes.setdefault(name, expected.dtype)
        elif isinstance(expected, int | float) and not isinstance(expected, bool):
            dtype = self.dtypes.get(name)
            if dtype is not None and dtype.is_floating_point:
                return torch.tensor(expected, dtype=dtype)
        return expected

    def _beside_float64(
        self,
        values: Sequence[object],
        trail: Trail,
        expected: Sequence[Expected],
        got: Sequence[RuntimeValue],
        tolerances: Sequence[Tolerance],
    ) -> Rejudged | None:
        """Judged again by the model in float64; None where it does not run so, or decides otherwise there."""
        precise, precise_trail = self.reference.precisely(values)
        if precise is None or len(precise) != len(expected) or precise_trail.ways != trail.ways:
            return None
        strict = [_of(self.rtol, name) is not None or _of(self.atol, name) is not None for name in self.output_names]
        again = rejudged(expected, precise, got, tolerances, strict)
        for name, allowed in zip(self.output_names, again.allowed, strict=True):
            if allowed:
                self.own_errors[name] = max(self.own_errors.get(name, 0.0), allowed)
        return again

    def _among_equals(
        self, values: Sequence[object], got: Sequence[RuntimeValue], tolerances: Sequence[Tolerance]
    ) -> tuple[list[Expected], tuple[Judgement, ...]] | None:
        """Eager's answer with the first of equals first, where that is the runtime's."""
        with FirstOfEquals() as choice:
            expected = self.reference.answer(values)[0]
        if not choice.met or expected is None or len(expected) != len(got):
            return None
        verdicts = tuple(judge(*each) for each in zip(expected, got, tolerances, strict=True))
        return None if _any_differs(verdicts) else (expected, verdicts)

    def _otherwise(
        self, values: Sequence[object], got: Sequence[RuntimeValue], tolerances: Sequence[Tolerance]
    ) -> tuple[list[Expected], tuple[Judgement, ...]] | None:
        """Eager's answer with autograd on, where that is the runtime's: an exporter may have traced that path."""
        other = self.reference.other_outputs(values)
        if other is None or len(other) != len(got):
            return None
        verdicts = tuple(judge(*each) for each in zip(other, got, tolerances, strict=True))
        return None if _any_differs(verdicts) else (other, verdicts)

    def _uncertain(
        self,
        values: Sequence[object],
        expected: Sequence[Expected],
        got: Sequence[RuntimeValue],
        tolerances: Sequence[Tolerance],
    ) -> str | None:
        precision = max((torch.finfo(dtype).eps for dtype in self.working), default=torch.finfo(torch.float32).eps)
        return excuse(self.reference.outputs_and_ways, values, expected, got, tolerances, precision, self.seed)

    def _tolerance(self, name: str, expected: Expected) -> Tolerance:
        chosen = tolerance_of(name, expected, self.working, self.rtol, self.atol)
        if not _is_empty_list(expected):
            self.tolerances[name] = chosen
        return self.tolerances.setdefault(name, chosen)

    def _overflow(self, values: Sequence[object], expected: Sequence[Expected], is_example: bool) -> str | None:
        """float16 overflows where the runtime, which computes it in float32, does not. The example is never excused,
        nor an input that holds an infinity itself, nor an infinity that is no overflow: the logarithm of zero, a mask.
        """
        if is_example or torch.float16 not in self.working or not _all_finite(values) or _all_finite(expected):
            return None
        told = "float16 overflows in eager, and the runtime computes it in float32"
        return told if self._is_seen_to_overflow(values) else None

    def _overflows_too(
        self,
        values: Sequence[object],
        expected: Sequence[Expected],
        got: Sequence[RuntimeValue],
        tolerances: Sequence[Tolerance],
    ) -> str | None:
        """Whether an overflow ends in NaN or in an infinity is a matter of the order of operations. Only where all that
        differs is one of the two on both sides, and eager is seen to overflow."""
        if not all(_finite_where_they_differ(*each) for each in zip(expected, got, tolerances, strict=True)):
            return None
        return "both overflow, in another order of operations" if self._is_seen_to_overflow(values) else None

    def _is_seen_to_overflow(self, values: Sequence[object]) -> bool:
        with Overflow() as overflow:
            self.reference.answer(values)
        return overflow.seen


def _finite_where_they_differ(expected: Expected, got: RuntimeValue, tolerance: Tolerance) -> bool:
    """Whether the two agree wherever either is a finite number."""
    if judge(expected, got, tolerance).difference is None:
        return True
    if (
        not (isinstance(expected, torch.Tensor) and isinstance(got, TensorData))
        or tuple(expected.shape) != got.shape[: expected.dim()]
    ):
        return False
    ours, theirs = as_float64(as_pairs(expected.detach().cpu())), as_float64(to_torch(got))
    if ours.shape != theirs.shape:
        return False
    if expected.is_complex():  # one part of a product overflows, and both are lost
        ours, theirs = (torch.where(each.isfinite().all(-1, keepdim=True), each, torch.nan) for each in (ours, theirs))
    lost = ~ours.isfinite() & ~theirs.isfinite()
    return bool((lost | ((ours - theirs).abs() <= tolerance.allowed(ours))).all())


def tolerance_of(
    name: str, expected: Expected, working: Sequence[torch.dtype], rtol: Allowed, atol: Allowed
) -> Tolerance:
    """How far an output of a model that computes in the `working` dtypes may be off."""
    first = expected[0] if isinstance(expected, Sequence) and expected else expected
    if isinstance(first, torch.Tensor):
        dtype = first.dtype
    else:
        dtype = torch.float64 if isinstance(first, float) else torch.int64
    return tolerance_for(dtype, working, _of(rtol, name), _of(atol, name))


def dtypes_of(job: Job) -> tuple[torch.dtype, ...]:
    """The float dtypes that the model computes in, as its weights and inputs tell. A float8 weight is storage; complex
    numbers are computed in the dtype of their parts."""
    tensors = [*job.model.parameters(), *job.model.buffers(), *(leaf.value for leaf in job.inputs)]
    found = {tensor.dtype.to_real() for tensor in tensors if isinstance(tensor, torch.Tensor)}
    return tuple(sorted((dtype for dtype in found if dtype.is_floating_point and dtype.itemsize > 1), key=str))


def _writes(answer: Sequence[Expected] | None) -> list[int | None]:
    return [write_count(tensor) for value in answer or () for tensor in _tensors(value)]


def _is_empty_list(value: Expected) -> bool:
    """Nothing tells the dtype of its items."""
    return isinstance(value, Sequence) and not value


def _any_differs(verdicts: Sequence[Judgement]) -> bool:
    return any(verdict.difference is not None for verdict in verdicts)


def _only_floats_differ(verdicts: Sequence[Judgement], expected: Sequence[Expected]) -> bool:
    """Whether there is a difference, and all that there is may be one of rounding."""
    differing = [(v.difference, e) for v, e in zip(verdicts, expected, strict=True) if v.difference is not None]
    return bool(differing) and all(
        difference.kind is DifferenceKind.VALUES
        and not isinstance(value, bool | int | float)
        and all(item.is_floating_point() or item.is_complex() for item in _tensors(value))
        for difference, value in differing
    )


def _all_finite(values: Sequence[object]) -> bool:
    floats = [item for value in values for item in _tensors(value) if item.is_floating_point()]
    return all(bool(tensor.isfinite().all()) for tensor in floats)


def _tensors(value: object) -> list[torch.Tensor]:
    """A tensor, or those of a list."""
    return [item for item in (value if isinstance(value, Sequence) else [value]) if isinstance(item, torch.Tensor)]


def refuse_unknown(allowed: Allowed, option: str, output_names: Sequence[str]) -> None:
    """A tolerance for an output that is not there would be of no effect, and nobody would know."""
    unknown = [name for name in allowed if name not in output_names] if isinstance(allowed, Mapping) else []
    if unknown:
        message = f"{option} names `{unknown[0]}`, which is no output of the model"
        fix = f"the outputs are {', '.join(f'`{name}`' for name in output_names)}"
        raise UsageError([UsageFault(message=message, fix=fix)])


def _of(allowed: Allowed, name: str) -> float | None:
    return allowed.get(name) if isinstance(allowed, Mapping) else allowed


def count(value: Expected) -> int:
    """How many elements there are to compare."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(item.numel() for item in value) if isinstance(value, Sequence) else 1
