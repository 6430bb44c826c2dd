"""One export on its way through the house, load to verify, and what was found on it.

Every other module knows its own room; this one reads like the picture in DESIGN.md.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from trueport import progress, summary, temporary
from trueport.capture.assumptions import library_decisions
from trueport.capture.effects.state import StateMode
from trueport.capture.graph import Graph, OpenItems, is_carried
from trueport.capture.stops.refusals import placed
from trueport.capture.trace import capture
from trueport.capture.unrolling import written_out
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.rules.tp006_random_kept import RandomKept
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError, UsageError
from trueport.examine import Examined, Precisely, Snapshot, examine, remembers, run_eager, run_with_state
from trueport.examine.garbage import uncollected
from trueport.examine.limits import within
from trueport.examine.versions import versions_found
from trueport.load.job import Job
from trueport.load.roots import source_roots
from trueport.lower.lower import lower
from trueport.lower.table import is_leaf
from trueport.lower.write import write_for_a_while
from trueport.program import carried_outputs, shown_functions
from trueport.report import Report
from trueport.source import SourceRoots
from trueport.torch_internals import OpOverload
from trueport.verify.assumptions import SizesJudged, judge_sizes
from trueport.verify.distribution import check_distribution
from trueport.verify.exported import check_exported
from trueport.verify.options import Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.sandbox import warm_up

_PATIENCE = 5.0
"""Seconds that one run of eager may take in any case."""

_MUCH = 64 << 20
"""Bytes of weights that earlier exports may leave to the collector."""

_NO_EFFECT = frozenset(
    "artifacts_dir do_constant_folding dump_exported_program dynamo export_params fallback keep_initializers_as_inputs "
    "optimize profile report strict training verbose".split()
)
"""Arguments of torch.onnx.export that mean nothing here; taken so that changing the import is the migration."""


@dataclass(frozen=True)
class CarriedModel:
    """A model on the other side."""

    graph: Graph
    model: ir.Model
    judged: SizesJudged
    checked: CheckResult | None


@dataclass
class Run:
    """One export: what was asked for, and what has been found so far."""

    opset: int
    custom: Mapping[Any, Callable[..., Any]]
    state: StateMode
    verify: bool
    checking: Options
    random: bool = False
    """Whether random results are meant."""
    found: list[Diagnostic] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    graph: Graph | None = None
    """What was captured last."""
    source: bool = True
    """Whether the lines of the source are noted in the file."""
    source_root: str | None = None
    """The folder that they are relative to; None for the project's."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        progress.stage(name)
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def options(self, given: Mapping[str, Any]) -> None:
        unknown = sorted(set(given) - _NO_EFFECT)
        if unknown:
            raise TypeError(f"export() got an unexpected keyword argument {unknown[0]!r}")

    def stop_on_errors(self) -> None:
        if self._has_errors():
            raise ExportError(self.found, shown_functions(self.graph) if self.graph is not None else ())

    def _is_told(self, finding: Diagnostic) -> bool:
        """An operator without a translation is met by capture and again by lower."""
        return any(isinstance(finding, type(told)) and finding.where == told.where for told in self.found)

    def carry(self, job: Job) -> CarriedModel:
        """load ► examine ► capture ► lower ► verify."""
        _passed.before(job.model)
        if self.verify:
            warm_up()
        with self.stage("examine"):
            self.found += versions_found()
            self.stop_on_errors()
            examined = examine(job, random=self.random)
            self.found += examined.diagnostics
        if self._has_errors() and examined.ran:
            self._look_further(job, examined)
        self.stop_on_errors()
        settled = list(self.found)
        with self.stage("capture"), uncollected():
            graph = self._capture(job, examined)
        carried, refused = None, None
        try:
            carried = self._carry_on(job, graph)
        except ExportError as failure:
            refused = failure
        if self._has_errors() and library_decisions(graph):
            kept = carried is not None and carried.checked is not None and carried.checked.kept is not None
            again = self._carry_with_libraries(job, examined, settled, kept)
            if again is not None:
                return again
        if carried is None:
            assert refused is not None
            raise refused
        return carried

    def _look_further(self, job: Job, examined: Examined) -> None:
        """What else stands in the way of a model that eager runs and that is refused already: who mends it wants to
        know all of it at once. A line that has an error needs no second one, and a fault of ours may be a consequence.
        """
        with self.stage("capture"):
            try:
                graph = capture(job, self._is_leaf, self.state)
                more = list(summary.settle_attributes(graph.diagnostics, examined, self.state, lambda: remembers(job)))
                more += judge_sizes(graph, job, lambda values: self._accepts(job, values), self.verify).diagnostics
            except ExportError as refused:
                more = list(placed(refused))
        lines = {(told.where.file, told.where.line) for told in self.found if told.is_error and told.where}
        for finding in more:
            at = (finding.where.file, finding.where.line) if finding.where else None
            if finding.is_error and not isinstance(finding, OurFault) and at not in lines and at is not None:
                self.found.append(finding)

    def _carry_with_libraries(
        self, job: Job, examined: Examined, settled: Sequence[Diagnostic], kept: bool
    ) -> CarriedModel | None:
        """Once more, with both sides of what libraries decide by free sizes: it was taken to be for speed only, and
        something is wrong. None, and the findings as they were, where that is no better."""
        before, self.found = self.found, list(settled)
        evidence = self.checking.evidence
        self.checking = replace(self.checking, evidence=None)  # what is kept there is the first attempt's
        try:
            with self.stage("capture"), uncollected():
                graph = self._capture(job, examined, libraries=True)
            carried = self._carry_on(job, graph)
        except ExportError:
            carried = None
        if carried is None or self._has_errors():
            self.found = before
            return None
        if evidence is not None and kept:
            evidence.withdraw()
        return carried

    def _has_errors(self) -> bool:
        return any(finding.is_error for finding in self.found)

    def _carry_on(self, job: Job, graph: Graph) -> CarriedModel:
        """lower ► verify."""
        with self.stage("lower"), uncollected():
            lowered = lower(graph, self.opset, self.custom)
            self.found += [finding for finding in lowered.diagnostics if not self._is_told(finding)]
        with self.stage("judge sizes"):
            judged = judge_sizes(graph, job, lambda values: self._accepts(job, values), self.verify)
            self.found += judged.diagnostics
            self.stop_on_errors()
        assert lowered.model is not None
        roots = source_roots(job.model, self.source_root)
        summary.describe(lowered.model, graph, job, roots if self.source else None)
        checked = None
        if self.verify:
            with self.stage("verify"):
                checked = self._check(job, graph, lowered.model, judged)
                self.found += summary.with_lines(checked.diagnostics, roots)
        else:
            self.found.append(NotVerified(message="verify=False: nothing was compared with eager"))
        return CarriedModel(graph, lowered.model, judged, checked)

    def _is_leaf(self, op: OpOverload, complex_numbers: bool) -> bool:
        return op in self.custom or is_leaf(op, complex_numbers)

    def _capture(self, job: Job, examined: Examined, libraries: bool = False) -> Graph:
        try:
            graph = capture(
                job,
                self._is_leaf,
                self.state,
                libraries=libraries,
            )
        except ExportError as refused:
            raise ExportError([*self.found, *placed(refused)], refused.rewritten) from refused.__cause__
        self.graph = graph
        self.found += written_out(graph)
        self.found += summary.settle_attributes(graph.diagnostics, examined, self.state, lambda: remembers(job))
        return graph

    def _check(self, job: Job, graph: Graph, model: ir.Model, judged: SizesJudged) -> CheckResult:
        state = Snapshot(job.model)
        with temporary.folder() as folder:
            path = _written_to_check(model, folder)
            progress.stage("verify")  # the bytes are written
            if any(isinstance(finding, RandomKept) for finding in self.found):
                return self._check_distribution(path, job, graph, state)
            return check_exported(
                path,
                job,
                graph,
                lambda values: self._eager(job, values, graph, state),
                lambda eager: _expected(graph, eager),
                carried_outputs(graph),
                lambda part: lower(part, self.opset, self.custom),
                Precisely(job, lambda wide, values: self._eager(wide, values, graph)),
                opset=self.opset,
                custom=self.custom,
                options=self.checking,
                judged=judged,
            )

    def _check_distribution(self, path: Path, job: Job, graph: Graph, state: Snapshot) -> CheckResult:
        checked = check_distribution(
            path,
            job,
            lambda values: self._eager(job, values, graph, state),
            lambda eager: _expected(graph, eager),
            carried_outputs(graph),
            graph.lifted,
            self.checking.seed,
        )
        if not checked.agrees:  # there will be no exported model that draws anything
            self.found = [finding for finding in self.found if not isinstance(finding, RandomKept)]
        return checked

    def _accepts(self, job: Job, values: Sequence[object]) -> bool:
        """Whether eager runs on these values. Whatever it raises, the input is none of the model's own."""
        try:
            with within(self._patience()):
                run_eager(job, values)
        except Exception:  # noqa: BLE001  a model may raise anything
            return False
        return True

    def _eager(self, job: Job, values: Sequence[object], graph: Graph, state: Snapshot | None = None) -> Any:
        with within(self._patience()):
            return run_with_state(job, values, graph.lifted, state)

    def _patience(self) -> float:
        """How long one run of eager may take: its loops need not end on an input of our making."""
        return _PATIENCE + 20 * self.seconds["examine"]

    def noting(self, job: Job) -> SourceRoots | None:
        """How lines of the source are noted in what is written; None where they are not."""
        return source_roots(job.model, self.source_root) if self.source else None

    def report(self, job: Job, carried: CarriedModel, path: Path | None) -> Report:
        return summary.report(job, carried, path, self.opset, self.found, self.seconds, self.noting(job))


def _written_to_check(model: ir.Model, folder: Path) -> Path:
    """The runtime reads files: what is to be checked is first written where it harms nobody."""
    try:
        return write_for_a_while(model, folder)
    except OSError as failure:
        why = failure.strerror or failure
        raise UsageError(
            [
                UsageFault(
                    message=f"the check needs a copy of the model in {folder.parent}, and cannot write it: {why}",
                    fix="make room there, or set TMPDIR to a folder that has it",
                )
            ]
        ) from failure


class _Passed:
    """The weights of the models that this process has exported since the collector last went through everything.

    An ONNX graph in memory is a ring (a node knows its values, a value its node), so only the collector ends it, and
    the weights with it. But that comes by the number of objects, not by their bytes: dozens of large models would wait.
    """

    def __init__(self) -> None:
        self._bytes = self._collections = 0

    def before(self, model: torch.nn.Module) -> None:
        """Before a model is exported: what earlier ones left goes, where it may be much."""
        collections = gc.get_stats()[-1]["collections"]
        if collections != self._collections:
            self._bytes = 0
        elif self._bytes > _MUCH and gc.isenabled():
            gc.collect()
            collections, self._bytes = gc.get_stats()[-1]["collections"], 0
        self._collections = collections
        tensors = itertools.chain(model.parameters(), model.buffers())
        self._bytes += sum(tensor.nbytes for tensor in tensors if tensor.layout is torch.strided)


_passed = _Passed()


def _expected(graph: Graph, eager: Any) -> list[Any]:
    """Eager's results, one for each output of the ONNX model: what forward returned, then the state that was lifted."""
    returned, state = eager
    values = graph.returns.flatten(returned)
    outputs = graph.outputs[: len(values)]
    carried = [
        _as_tensor(output.value, value)
        for value, output in zip(values, outputs, strict=True)
        if is_carried(output.value)
    ]
    return [*carried, *(state[name] for name in graph.lifted)]


def _as_tensor(output: Any, value: Any) -> Any:
    """A list of Python numbers whose length is open is one tensor of them in ONNX."""
    numbers = isinstance(output, OpenItems) and output.number is not None
    return torch.tensor(value, dtype=output.rows.dtype) if numbers else value
