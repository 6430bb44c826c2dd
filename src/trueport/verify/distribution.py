"""The check of a model that draws random numbers: it must give what eager gives in shape and dtype, and be distributed
as eager's results are. Values cannot be compared.

Both are run many times on the same input. Each run is boiled down to a few numbers (some elements, the mean, the
spread, ...), and for each of these the two samples are compared by the largest distance between their cumulative
distributions (Kolmogorov and Smirnov). The limit is one that samples of the same distribution exceed once in ten
million times, so a finding is no accident.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp811_wrong_distribution import WrongDistribution
from trueport.graph.regions import Graph
from trueport.load.job import Job
from trueport.verify.check import Opened, limits_for, open_model
from trueport.verify.faults.evidence import ComparedCall, Evidence
from trueport.verify.faults.findings import EXAMPLE, difference_found, failure_found, input_words
from trueport.verify.inputs.draw import Drawn, draw
from trueport.verify.judging.compare import compare, tolerance_for
from trueport.verify.judging.comparing import Feed
from trueport.verify.judging.reference import FlattenOutputs, RunEager, expected_outputs
from trueport.verify.results import AgreedInput, CheckResult
from trueport.verify.runtime.feeds import feeds_for, held_sizes, tied_sizes
from trueport.verify.runtime.sandbox import WorkerFailure
from trueport.verify.runtime.tensors import TensorData, from_torch, to_torch

_RUNS = (80, 200)
_ELEMENTS = 20_000
"""Runs for each input: so many that there are enough random elements in all, within bounds."""
_SECONDS = 0.25
"""Of processor time, for the runs of eager on one input: what a busy machine takes longer does not make them fewer."""
_INPUTS = 3
_SHOWN = 5
"""How many runs a counterexample holds."""
_ATTEMPTS = 30
_LIMIT = math.sqrt(-math.log(1e-7 / 2) / 2)
_SINGLE = 6
"""How many single elements are looked at."""

Samples = list[list[Any]]
"""Per run, one value per output."""


def check_distribution(
    path: Path,
    job: Job,
    graph: Graph,
    run_eager: RunEager,
    seed: int = 0,
) -> CheckResult:
    """Compare how the results of a file that was made of `graph` and of eager are distributed, on the example and a few
    other inputs. What `run_eager` gives is what forward returned, and the state that it left."""
    opened = open_model(path, limits_for(job))
    if isinstance(opened, Diagnostic):
        return CheckResult(diagnostics=(opened,), seed=seed)
    with opened.loaded as loaded:
        feed = partial(feeds_for, job, ports=loaded.inputs, fixed=graph.lifted)
        flatten = partial(expected_outputs, graph)
        check = Distributions(job, opened, run_eager, flatten, graph.output_names, feed, seed)
        return check.result(
            draw(job, _example(job), seed, tied=tied_sizes(job, loaded.inputs), held=held_sizes(job, loaded.inputs))
        )


def _of_new_sizes(drawn: Iterator[Any]) -> Iterator[Any]:
    """Inputs whose sizes were not seen, then the others: a few are enough, and sizes tell most."""
    first = list(itertools.islice(drawn, _ATTEMPTS))
    seen: set[tuple[tuple[str, int], ...]] = set()
    later = []
    for each in first:
        key = tuple(sorted(each.sizes.items()))
        if key in seen:
            later.append(each)
        else:
            seen.add(key)
            yield each
    yield from later


@dataclass
class Distributions:
    """One check on its way: what does not change, then what it has found so far."""

    job: Job
    opened: Opened
    run_eager: RunEager
    flatten: FlattenOutputs
    names: tuple[str, ...]
    feed: Feed
    seed: int
    evidence: Evidence | None = None
    checked: list[AgreedInput] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    refused: int = 0
    kept: Path | None = None

    def result(self, drawn: Iterator[Drawn]) -> CheckResult:
        """Compare on the example, then on a few of the drawn inputs. Raises only what eager raises on the example."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.compare_on(_example(self.job), {}, EXAMPLE)
            for each in _of_new_sizes(drawn):
                if self.findings or len(self.checked) >= _INPUTS:
                    break
                self.compare_on(each.values, each.sizes, each.family)
        return CheckResult(
            tuple(self.checked),
            tuple(self.findings),
            self.refused,
            seed=self.seed,
            by_distribution=True,
            kept=self.kept,
        )

    def compare_on(self, values: Sequence[object], sizes: Mapping[str, int], family: str) -> None:
        is_example = family == EXAMPLE
        on = input_words(sizes, family)
        try:
            first = self._eager(values)
        except Exception:  # whatever a model raises on an input of our making, the input is none of its own
            if is_example:
                raise
            self.refused += 1
            return
        count = _count(first)
        began = time.monotonic()
        ours = [first, *_within(lambda: self._eager(values), count - 1)]
        eager_seconds = time.monotonic() - began
        feeds = self.feed(values)
        began = time.monotonic()
        try:
            theirs = [self._runtime(feeds) for _ in ours]
        except WorkerFailure as failure:
            self.findings.append(failure_found(failure, on))
            return
        runtime_seconds = time.monotonic() - began
        for at, name in enumerate(self.names):
            one, other = [run[at] for run in ours], [run[at] for run in theirs]
            found = self._compare(name, one, other, on)
            if found is not None:
                seen = (*found.seen, *_never_alike(one, other), *self._evidence(feeds, ours))
                self.findings.append(replace(found, seen=seen))
                return
        told = f"{family}, {len(ours)} runs of eager and {len(theirs)} of the model"
        elements = sum(value.numel() for value in first if isinstance(value, torch.Tensor))
        self.checked.append(AgreedInput(sizes, told, elements, 0.0, 0.0, eager_seconds, runtime_seconds))

    def _eager(self, values: Sequence[object]) -> list[Any]:
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]
        return [_tensor(value) for value in self.flatten(self.run_eager(copies))]

    def _evidence(self, feeds: Mapping[str, TensorData], ours: Samples) -> tuple[str, ...]:
        if self.evidence is None:
            return ()
        calls = [ComparedCall(feeds, run) for run in ours[:_SHOWN]]
        told = self.evidence.kept_calls(self.opened.blame.path, calls, self.names)
        self.kept = told.folder
        return (told.words,)

    def _runtime(self, feeds: Mapping[str, TensorData]) -> list[Any]:
        outputs = self.opened.loaded.run(feeds)
        return [outputs[name] for name in self.names]

    def _compare(self, name: str, ours: list[Any], theirs: list[Any], on: str) -> Diagnostic | None:
        if not all(isinstance(value, torch.Tensor) for value in ours):
            return self._compare_lists(name, ours, theirs, on)
        same_shape = len({value.shape for value in ours}) == 1
        for got in theirs[:1] if same_shape else ():
            empty = torch.zeros_like(ours[0])
            difference = compare(empty, got)
            if difference is not None and difference.kind.value in ("shape", "dtype", "structure"):
                return difference_found(name, difference, on, ())
        if not same_shape or not ours[0].numel():
            return None
        tolerance = tolerance_for(ours[0].dtype)
        given = [_like(ours[0], to_torch(got)) for got in theirs]
        for what, one, other in _statistics(ours, given):
            slack = float(tolerance.allowed(one).max())
            distance = _distance(one, other, slack)
            limit = _LIMIT * math.sqrt(1 / len(one) + 1 / len(other))
            if distance > limit:
                return _found(name, what, one, other, distance, limit, on)
        return None

    def _compare_lists(self, name: str, ours: list[Any], theirs: list[Any], on: str) -> Diagnostic | None:
        """Lists of tensors: how many there are, and where that is always the same, one item after the other."""
        counts = [[torch.tensor(len(items)) for items in side] for side in (ours, theirs)]
        told = self._compare(f"the length of {name}", counts[0], list(map(from_torch, counts[1])), on)
        if told is not None or len({len(items) for items in (*ours, *theirs)}) != 1:
            return told
        for at in range(len(ours[0])):
            one, other = [items[at] for items in ours], [items[at] for items in theirs]
            found = self._compare(f"{name}[{at}]", one, other, on)
            if found is not None:
                return found
        return None


def _found(
    name: str, what: str, one: torch.Tensor, other: torch.Tensor, distance: float, limit: float, on: str
) -> Diagnostic:
    def spread(sample: torch.Tensor) -> str:
        return f"{sample.mean():.4g} ± {sample.std():.2g}"

    return WrongDistribution(
        message=f"{what} of output `{name}` is distributed otherwise than in eager: "
        f"eager {spread(one)}, ONNX {spread(other)}",
        seen=(
            f"input: {on}",
            f"{len(one)} runs of eager, {len(other)} of the model; their distributions differ by {distance:.2f}, "
            f"where chance explains {limit:.2f}",
        ),
    )


def _never_alike(ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[str, ...]:
    """Where the file always gives the same, and eager never gives that: no run of either is explained by chance."""
    if len({got.data for got in theirs if isinstance(got, TensorData)}) != 1:
        return ()
    alike = sum(compare(one, theirs[0]) is None for one in ours)
    return (f"the file gives the same in all {len(theirs)} runs, and eager that in {alike or 'none'} of {len(ours)}",)


def _example(job: Job) -> list[object]:
    return [leaf.value for leaf in job.leaves]


def _tensor(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, bool | int | float) else value


def _like(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(theirs) if ours.is_complex() and not theirs.is_complex() else theirs


def _count(outputs: Sequence[Any]) -> int:
    elements = max((value.numel() for value in outputs if isinstance(value, torch.Tensor)), default=1)
    return min(max(_ELEMENTS // max(elements, 1), _RUNS[0]), _RUNS[1])


def _within(run: Any, count: int) -> Iterator[Any]:
    """So many runs, or as many as the time allows, but never so few that nothing could be said."""
    began = time.process_time()
    for done in range(count):
        if time.process_time() - began > _SECONDS and done >= _RUNS[0] // 2:
            return
        yield run()


def _statistics(
    ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """What is compared, with the two samples of it: one number per run."""
    one, other = _rows(ours), _rows(theirs)
    for (what, mine), (_, given) in zip(_numbers(one), _numbers(other), strict=True):
        yield what, mine, given


def _rows(values: Sequence[torch.Tensor]) -> torch.Tensor:
    flat = [torch.view_as_real(v.resolve_conj()).flatten() if v.is_complex() else v.flatten() for v in values]
    return torch.stack([each.double() for each in flat])


def _numbers(runs: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    yield "the number of NaNs", runs.isnan().sum(1).double()
    yield "the number of infinities", runs.isinf().sum(1).double()
    plain = torch.nan_to_num(runs, 0.0, 0.0, 0.0)
    count = plain.shape[1]
    for at in sorted({round(i * (count - 1) / max(_SINGLE - 1, 1)) for i in range(_SINGLE)}):
        yield f"element {at}", plain[:, at]
    yield "the mean", plain.mean(1)
    yield "the mean size", plain.abs().mean(1)
    yield "the smallest element", plain.amin(1)
    yield "the largest element", plain.amax(1)
    yield "the number of zeros", (plain == 0).sum(1).double()
    if count > 1:
        yield "the spread", plain.std(1)
        yield "the product of neighbours", (plain[:, 1:] * plain[:, :-1]).mean(1)


def _distance(one: torch.Tensor, other: torch.Tensor, slack: float) -> float:
    """The largest distance of the cumulative distributions, numbers that are `slack` apart being the same."""
    one, other = one.sort().values, other.sort().values

    def above(a: torch.Tensor, b: torch.Tensor) -> float:
        """How much more of `a` lies up to a point than of `b` up to it and the slack."""
        reached = torch.searchsorted(b, a + slack, right=True).double() / len(b)
        return float((torch.arange(1, len(a) + 1) / len(a) - reached).max())

    return max(above(one, other), above(other, one))
