"""Runs a written model on the example and on drawn inputs, and compares it with eager on each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import TrueportError
from trueport.load.job import Job
from trueport.verify.blame import Blame
from trueport.verify.compare import Expected, Tolerance, judge, tolerance_for
from trueport.verify.draw import Drawn, draw
from trueport.verify.feeds import feeds_for, held_sizes, misfit, tied_sizes
from trueport.verify.findings import (
    EXAMPLE,
    LOADING,
    count_found,
    difference_found,
    empty_refused,
    failure_found,
    hardly_checked,
    input_words,
    size_not_moved,
    structure_found,
)
from trueport.verify.origin import origin_of
from trueport.verify.results import Budget, CheckedInput, CheckResult
from trueport.verify.sandbox import FailureKind, Limits, LoadedModel, Worker, WorkerFailure, shared_worker
from trueport.verify.sensitivity import excuse
from trueport.verify.sizes import Group, example_sizes, groups_of
from trueport.verify.tensors import TensorData

RunEager = Callable[[Sequence[object]], object]
"""Runs the model on one value per leaf. It may write to the values; it must not change the model."""
FlattenOutputs = Callable[[object], list[Expected]]
"""What eager returned, one value per output. Raises a TrueportError where that has another structure than it had."""

_OTHER_VALUES = 2
"""How many values besides the example's each free size is to be seen at."""


def check_model(
    path: Path,
    job: Job,
    run_eager: RunEager,
    flatten_outputs: FlattenOutputs,
    output_names: Sequence[str],
    *,
    fixed_feeds: Mapping[str, torch.Tensor] | None = None,
    extra_sizes: Sequence[Mapping[str, int]] = (),
    seed: int = 0,
    at_least: int = 5,
    budget: Budget | None = None,
    limits: Limits | None = None,
    working_dtypes: Sequence[torch.dtype] = (),
    rtol: float | None = None,
    atol: float | None = None,
    worker: Worker | None = None,
) -> CheckResult:
    """Compare the file with eager on the example, then on inputs that eager accepts: at least `at_least` in all, with
    every free size at two other values. `extra_sizes` come first; `fixed_feeds` are inputs that are no arguments
    (lifted state). Raises only what eager raises on the example.
    """
    worker = worker or shared_worker()
    limits = limits or limits_for(job)
    blame = Blame(worker, path, limits)
    try:
        loaded = worker.load(path, limits)
    except WorkerFailure as failure:
        finding = failure_found(failure, LOADING, blame.of_load(failure), origin_of(path, failure.detail))
        return CheckResult(diagnostics=(finding,), seed=seed)
    with loaded:
        fault = misfit(loaded.inputs, [*(leaf.name for leaf in job.inputs), *(fixed_feeds or {})], "inputs") or misfit(
            loaded.outputs, output_names, "outputs"
        )
        if fault is not None:
            return CheckResult(diagnostics=(OurFault(message=fault),), seed=seed)
        check = _Check(
            job=job,
            run_eager=run_eager,
            flatten_outputs=flatten_outputs,
            output_names=tuple(output_names),
            fixed_feeds=fixed_feeds or {},
            seed=seed,
            limits=limits,
            working=(*working_dtypes, *_dtypes_of(job)),
            rtol=rtol,
            atol=atol,
            loaded=loaded,
            blame=blame,
        )
        check.search(extra_sizes, at_least, budget or Budget())
        return check.result()


def limits_for(job: Job) -> Limits:
    """Room for the weights a few times over: as they are mapped, as they are packed, and what they are folded into."""
    tensors = [*job.model.parameters(), *job.model.buffers()]
    weights = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return Limits(memory_bytes=(4 << 30) + 4 * weights)


@dataclass
class _Check:
    """One check on its way: what does not change, then what it has found so far."""

    job: Job
    run_eager: RunEager
    flatten_outputs: FlattenOutputs
    output_names: tuple[str, ...]
    fixed_feeds: Mapping[str, torch.Tensor]
    seed: int
    limits: Limits
    working: tuple[torch.dtype, ...]
    rtol: float | None
    atol: float | None
    loaded: LoadedModel
    blame: Blame
    checked: list[CheckedInput] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    refused: int = 0
    tried: int = 0
    example: Mapping[str, int] = field(default_factory=dict)
    empty_refused: set[str] = field(default_factory=set)

    def search(self, extra_sizes: Sequence[Mapping[str, int]], at_least: int, budget: Budget) -> None:
        values = [leaf.value for leaf in self.job.leaves]
        example = self.example = example_sizes(self.job.leaves, values)
        began = time.monotonic()
        self.compare_on(Drawn(lambda: tuple(values), example, EXAMPLE), must_run=True)
        tied, held = tied_sizes(self.job, self.loaded.inputs), held_sizes(self.job, self.loaded.inputs)
        groups = groups_of(self.job.free_sizes, example, tied, held)
        drawn = draw(self.job, values, self.seed, extra_sizes, tied=tied, held=held)
        for candidate in self._worth_trying(drawn):
            if any(finding.is_error for finding in self.findings) or self.tried >= budget.attempts:
                break
            elapsed = time.monotonic() - began
            further = elapsed < budget.further_seconds and len(self.checked) < budget.further_inputs
            required = candidate.wanted or not self._is_enough(groups, at_least)
            if elapsed > budget.seconds or not (required or further):
                break
            self.compare_on(candidate)
        self._say_what_is_missing(groups)

    def compare_on(self, drawn: Drawn, must_run: bool = False) -> None:
        """One input through both. Nothing is noted of an input that eager refuses but that it did."""
        on = input_words(drawn.sizes, drawn.family)
        self.tried += not must_run
        began = time.monotonic()
        try:
            expected = self._eager(drawn.values, must_run)
        except TrueportError as mismatch:
            self.findings.append(structure_found(str(mismatch), on))
            return
        eager_seconds = time.monotonic() - began
        if expected is None:
            self.refused += 1
            return
        if len(expected) != len(self.output_names):
            self.findings.append(count_found(len(expected), len(self.output_names), on))
            return
        feeds = feeds_for(self.job, drawn.values, self.loaded.inputs, self.fixed_feeds)
        began = time.monotonic()
        try:
            outputs = self.loaded.run(feeds, seconds=max(self.limits.run_seconds, 20 * eager_seconds))
        except WorkerFailure as failure:
            self._note_failure(failure, drawn, feeds, on)
            return
        runtime_seconds = time.monotonic() - began
        got = [outputs[name] for name in self.output_names]
        tolerances = [self._tolerance(name, value) for name, value in zip(self.output_names, expected, strict=True)]
        verdicts = [judge(*each) for each in zip(expected, got, tolerances, strict=True)]
        if all(verdict.difference is None for verdict in verdicts):
            worst = max((verdict.worst for verdict in verdicts), default=0.0)
            elements = sum(_count(value) for value in expected)
            self.checked.append(
                CheckedInput(drawn.sizes, drawn.family, elements, worst, eager_seconds, runtime_seconds)
            )
            return
        reason = self._overflow(expected, must_run) or excuse(
            self._eager, drawn.values, expected, got, tolerances, self._precision(), self.seed
        )
        if reason is not None:
            self.excused.append(f"{on}: {reason}")
            return
        named = dict(zip(self.output_names, expected, strict=True))
        seen = (*self._how_many_agree(), *self.blame.of_difference(feeds, named, tolerances))
        for name, verdict in zip(self.output_names, verdicts, strict=True):
            if verdict.difference is not None:
                self.findings.append(difference_found(name, verdict.difference, on, seen))

    def _note_failure(self, failure: WorkerFailure, drawn: Drawn, feeds: Mapping[str, TensorData], on: str) -> None:
        """A run without a result. On an empty input it is told once and no more: the runtime says no aloud, and several
        of its kernels cannot do otherwise."""
        place = origin_of(self.blame.path, failure.detail)
        empty = sorted(name for name, size in drawn.sizes.items() if size == 0 and self.example[name] != 0)
        if not empty or failure.kind not in (FailureKind.REFUSES_INPUT, FailureKind.CRASH):
            self.findings.append(failure_found(failure, on, self.blame.of_run(failure, feeds), place))
        elif self.empty_refused.isdisjoint(empty):
            self.empty_refused.update(empty)
            self.findings.append(empty_refused(failure, empty, self.blame.of_run(failure, feeds), place))

    def result(self) -> CheckResult:
        return CheckResult(
            checked=tuple(self.checked),
            diagnostics=tuple(self.findings),
            refused_by_eager=self.refused,
            excused=tuple(self.excused),
            tolerances=self.tolerances,
            seed=self.seed,
        )

    def _worth_trying(self, drawn: Iterator[Drawn]) -> Iterator[Drawn]:
        """Leaves out the fallbacks of sizes that eager has accepted."""
        refused_before = self.refused
        for candidate in drawn:
            if candidate.fallback and self.refused == refused_before:
                continue
            refused_before = self.refused
            yield candidate

    def _eager(self, values: Sequence[object], must_run: bool = False) -> list[Expected] | None:
        """Eager's outputs on copies of the values, or None where it refuses them."""
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]
        try:
            returned = self.run_eager(copies)
        except Exception:
            # Whatever a model raises on an input of our making means that the input is none of its own.
            if must_run:
                raise
            return None
        return self.flatten_outputs(returned)

    def _tolerance(self, name: str, expected: Expected) -> Tolerance:
        first = expected[0] if isinstance(expected, Sequence) and expected else expected
        if isinstance(first, torch.Tensor):
            dtype = first.dtype
        else:
            dtype = torch.float64 if isinstance(first, float) else torch.int64
        chosen = tolerance_for(dtype, self.working, self.rtol, self.atol)
        self.tolerances[name] = chosen
        return chosen

    def _precision(self) -> float:
        return max((torch.finfo(dtype).eps for dtype in self.working), default=torch.finfo(torch.float32).eps)

    def _overflow(self, expected: Sequence[Expected], is_example: bool) -> str | None:
        """float16 overflows where the runtime, which computes it in float32, does not. The example is never excused."""
        if is_example or torch.float16 not in self.working:
            return None
        tensors = [value for value in expected if isinstance(value, torch.Tensor)]
        overflows = any(not bool(tensor.isfinite().all()) for tensor in tensors if tensor.is_floating_point())
        return "float16 overflows in eager, and the runtime computes it in float32" if overflows else None

    def _is_enough(self, groups: Sequence[Group], at_least: int) -> bool:
        return len(self._telling()) >= at_least and all(
            len(self._others_seen(group)) >= min(_OTHER_VALUES, group.reach - group.minimum) for group in groups
        )

    def _telling(self) -> list[CheckedInput]:
        """Two empty tensors agree on little."""
        return [checked for checked in self.checked if checked.elements]

    def _others_seen(self, group: Group) -> set[int]:
        return {checked.sizes[group.names[0]] for checked in self.checked} - {group.example}

    def _say_what_is_missing(self, groups: Sequence[Group]) -> None:
        if self.findings:
            return
        agreed = self._telling() or self.checked
        on_example = any(checked.family == EXAMPLE for checked in agreed)
        if self.tried and (len(agreed) < 2 or not on_example):
            self.findings.append(hardly_checked(on_example, self.refused, tuple(self.excused), self.tried))
            return
        for group in groups:
            if group.is_movable and not self._others_seen(group):
                self.findings.extend(size_not_moved(name, (group.example,)) for name in group.names)

    def _how_many_agree(self) -> tuple[str, ...]:
        count = len(self.checked)
        return (f"{count} other input{'s' * (count > 1)} agree{'s' * (count == 1)}",) if count else ()


def _count(value: Expected) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(item.numel() for item in value) if isinstance(value, Sequence) else 1


def _dtypes_of(job: Job) -> tuple[torch.dtype, ...]:
    """The float dtypes that the model computes in, as its weights and inputs tell. A float8 weight is storage."""
    tensors = [*job.model.parameters(), *job.model.buffers(), *(leaf.value for leaf in job.inputs)]
    found = {tensor.dtype for tensor in tensors if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()}
    return tuple(sorted((dtype for dtype in found if dtype.itemsize > 1), key=str))
