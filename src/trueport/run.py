"""One export on its way through the house, and what was found on it.

    load ──► examine ──► capture ──► judge ──► lower ──► optimise ──► verify ──► report
                            ▲                    ▲                      │
                            │                    └──────────────────────┤ something is wrong that is right without
                            │                                           │ some pass: without that one
                            └───────────────────────────────────────────┘ something is wrong, and a library decides by a
                                                                          free size: once more, with both of its sides;
                                                                          or eager asks whether it is exported: as eager

Each stage is a function of what the stages before it gave, and gives a frozen dataclass; findings travel in these.
`Run.carry` reads like this picture.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from trueport import progress, summary, temporary
from trueport.capture.assumptions import library_decisions
from trueport.capture.effects.state import StateMode
from trueport.capture.stops.refusals import placed
from trueport.capture.trace import capture
from trueport.capture.unrolling import written_out
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.rules.tp006_random_kept import RandomKept
from trueport.diagnostics.rules.tp009_taken_as import TakenAs
from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.diagnostics.rules.tp302_size_narrowed import SizeNarrowed
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.diagnostics.spelling import option, told
from trueport.errors import ExportError, UsageError
from trueport.examine import Examined, Precisely, Snapshot, examine, run_eager, run_with_state
from trueport.examine.counting import counted_up, right_for_one_call
from trueport.examine.limits import within
from trueport.examine.unheard import unheard
from trueport.functions.asked import Wanted
from trueport.functions.stage import NamedCalls, write_functions
from trueport.garbage import thawed, uncollected
from trueport.graph.regions import Graph
from trueport.load.job import Job, Leaf, sizes_in
from trueport.load.request import with_counters
from trueport.load.roots import source_roots
from trueport.lower.lower import Lowered, lower
from trueport.lower.noted import describe
from trueport.lower.table import is_leaf
from trueport.lower.weights import add_weights_to_inputs
from trueport.lower.write import write_for_a_while
from trueport.optimise.sequence import PassResult
from trueport.optimise.stage import Optimised, left_out, optimised
from trueport.program import CarriedModel, shown_functions
from trueport.report import Report
from trueport.report.versions import installed_versions
from trueport.source import SourceRoots
from trueport.torch_internals import OpOverload
from trueport.verify.assumed.judge import judge_trace
from trueport.verify.assumed.sizes import TraceJudged, Way, goes_another_way
from trueport.verify.distribution import check_distribution
from trueport.verify.exported import check_exported, knows_that_it_is_exported
from trueport.verify.options import FEW, Options
from trueport.verify.results import CheckResult
from trueport.verify.runtime.sandbox import warm_up
from trueport.versions import versions_found

_PATIENCE = 5.0
"""Seconds that one run of eager may take in any case."""

_MUCH = 64 << 20
"""Bytes of weights that earlier exports may leave to the collector."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What is asked of an export, besides the model and its inputs."""

    opset: int
    custom: Mapping[Any, Callable[..., Any]]
    state: StateMode
    verify: bool
    checking: Options
    random: bool
    """Whether random results are meant."""
    source: bool
    """Whether the lines of the source are noted in the file."""
    source_root: str | None
    """The folder that they are relative to; None for the project's."""
    passes: tuple[str, ...]
    """The passes over the ONNX model that may run, by name."""
    functions: Wanted = False
    """Of which modules functions of the model are made."""
    weights_as_inputs: bool = False
    """Whether a caller may give other weights than those in the file."""
    domains: Mapping[str, int] = field(default_factory=dict)
    """Versions of the domains of users' own operators."""


@dataclass(frozen=True)
class Attempt:
    """How far one trace came: there is no model where an error stopped it before it was checked."""

    found: tuple[Diagnostic, ...]
    graph: Graph
    model: ir.Model | None = None
    checked: CheckResult | None = None
    passes: tuple[PassResult, ...] = ()
    explained: Callable[[], Attempt] | None = None
    """Looks into what the check found, where that was put off; None where all is told."""

    @property
    def failed(self) -> bool:
        return any(finding.is_error for finding in self.found)

    @property
    def kept(self) -> bool:
        """Whether it left a counterexample."""
        return self.checked is not None and self.checked.kept is not None

    def beside(self, others: Sequence[Diagnostic]) -> Attempt:
        """With the errors of another attempt, at lines that have none yet: no failure hides behind another one's."""
        lines = {finding.where for finding in self.found if finding.is_error}
        more = [each for each in others if each.is_error and each.where not in lines]
        return replace(self, found=(*self.found, *more))

    def carried(self) -> CarriedModel:
        if self.failed or self.model is None:
            raise ExportError(self.found, shown_functions(self.graph))
        return CarriedModel(self.found, self.graph, self.model, self.checked, self.passes)


class NotCaptured(ExportError):
    """A trace that did not come to its end."""


@dataclass(frozen=True)
class Stopwatch:
    """How long each stage took, for the report."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        progress.stage(name)
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


@dataclass(frozen=True)
class Run:
    """One export of what `load` made."""

    job: Job
    options: ExportOptions
    watch: Stopwatch

    @thawed()
    def carry(self) -> tuple[Run, CarriedModel]:
        """The model on the other side, and the run that brought it there: this one, or one with the flags baked in.

        `use_cache=False` is an input as long as both sides fit into one graph. Where they do not (one returns a cache),
        only Python can look at it. Numbers that the call counts up in an object are inputs, too; as constants they are
        refused. Raises ExportError where a stage has an error to tell.
        """
        counters = counted_up(self.job)
        if not counters:
            return self._with_flags()
        try:
            return replace(self, job=with_counters(self.job, [leaf for leaf, _ in counters]))._with_flags()
        except ExportError as refused:
            raise ExportError((right_for_one_call(counters), *refused.diagnostics), refused.rewritten) from refused

    def _with_flags(self) -> tuple[Run, CarriedModel]:
        try:
            return self, self._carried()
        except NotCaptured as refused:
            if not self.job.flags:
                raise
            kept = replace(self, job=self.job.with_constants(self.job.flags, _kept_flags(self.job.flags, refused)))
            with contextlib.suppress(ExportError):
                return kept, kept._carried()
            raise

    def _carried(self) -> CarriedModel:
        """examine ► capture ► judge ► lower ► optimise ► verify."""
        _passed.before(self.job.model)
        if self.options.verify:
            warm_up()
        examined = self._examine()
        try:
            attempt = self._attempt(examined)
        except NotCaptured as refused:
            if not any(isinstance(finding, OurFault | SizeNarrowed) for finding in refused.diagnostics):
                raise
            attempt = self._as_eager_is_told(refused, examined)
        if self._knows_that_it_is_exported(attempt):
            attempt = self._once_more(attempt, examined, exporting=False)
        elif attempt.failed and library_decisions(attempt.graph):
            attempt = self._once_more(attempt, examined, libraries=True)
        return attempt.carried()

    def report(self, carried: CarriedModel, path: Path | None) -> Report:
        return summary.report(self.job, carried, path, self.options.opset, self.watch.seconds, self.noting())

    def noting(self) -> SourceRoots | None:
        """How lines of the source are noted in what is written; None where they are not."""
        return self._roots() if self.options.source else None

    # The ways through the stages

    def _attempt(
        self, examined: Examined, libraries: bool = False, exporting: bool = True, before: Graph | None = None
    ) -> Attempt:
        """capture ► judge ► lower ► optimise ► verify. What stands in the way of a check is told all at once."""
        graph = self._capture(examined, libraries, exporting, before)
        judged = self._judge(graph, examined)
        lowered = self._lower(graph)
        found = (*examined.diagnostics, *written_out(graph), *judged.diagnostics)
        found += tuple(finding for finding in lowered.diagnostics if not _is_told(finding, found))
        if lowered.model is None or any(finding.is_error for finding in found):
            return Attempt(found, graph)
        smaller = self._optimise(graph, lowered)
        if self.options.weights_as_inputs:
            add_weights_to_inputs(smaller.model)
        if not self.options.verify:
            unchecked = NotVerified(
                message=told(option("verify", False), ": nothing was compared with eager"), seen=smaller.unchecked()
            )
            return Attempt((*found, *smaller.findings, unchecked), graph, smaller.model, passes=smaller.results)
        if libraries or not library_decisions(graph):
            return self._compared(found, graph, judged, smaller)
        return self._compared_briefly(found, graph, judged, smaller)

    def _compared(
        self, found: tuple[Diagnostic, ...], graph: Graph, judged: TraceJudged, smaller: Optimised
    ) -> Attempt:
        """verify, and who is guilty where the two differ."""
        random = _draws(found)
        checked = self._verify(graph, smaller.model, judged, random)
        if smaller.is_changed and not checked.agrees and self.options.checking.explain:
            smaller, checked = self._without_guilty_passes(graph, judged, random, smaller, checked)
        if random and not checked.agrees:  # there will be no exported model that draws anything
            found = tuple(finding for finding in found if not isinstance(finding, RandomKept))
        found += (*smaller.findings, *summary.with_lines(checked.diagnostics, self._roots()))
        return Attempt(found, graph, smaller.model, checked, smaller.results)

    def _compared_briefly(
        self, found: tuple[Diagnostic, ...], graph: Graph, judged: TraceJudged, smaller: Optimised
    ) -> Attempt:
        """The same where a difference is not the last word: it is looked into only if both sides of what libraries
        decide are no better."""
        options = replace(self.options, checking=replace(self.options.checking, explain=False))
        brief = replace(self, options=options)._compared(found, graph, judged, smaller)
        if not brief.failed or brief.checked is None:
            return brief
        ways = [goes_another_way(graph, sizes_in(self.job.leaves, values)) for values in brief.checked.differs_on]
        by_libraries = bool(ways) and all(ways)
        if (
            smaller.is_changed
            and not by_libraries
            and not self._is_wrong(graph, judged, _draws(found), brief.checked)(())
        ):
            return self._compared(found, graph, judged, smaller)  # libraries have nothing to do with it
        return replace(brief, explained=lambda: self._compared(found, graph, judged, smaller))

    def _without_guilty_passes(
        self, graph: Graph, judged: TraceJudged, random: bool, smaller: Optimised, failed: CheckResult
    ) -> tuple[Optimised, CheckResult]:
        """Where the model is right before the passes, on the input that failed: without those that made it wrong."""
        without = left_out(smaller.names, self._is_wrong(graph, judged, random, failed))
        if not without:
            return smaller, failed  # the passes have nothing to do with it
        evidence = self.options.checking.evidence
        if evidence is not None and failed.kept is not None:
            evidence.withdraw()
        kept = [name for name in smaller.names if name not in without]
        for names in (kept, ()):
            again = self._optimise(graph, None, names)
            checked = self._verify(graph, again.model, judged, random)
            if checked.agrees:
                break
        gone = [name for name in smaller.names if name not in again.names]
        return again.without(gone, failed.diagnostics), checked

    def _is_wrong(
        self, graph: Graph, judged: TraceJudged, random: bool, failed: CheckResult
    ) -> Callable[[Sequence[str]], bool]:
        """Tells of the model with passes of these names whether it is wrong on the input that failed."""
        wrong = replace(judged, must_try_values=(*judged.must_try_values, *failed.differs_on))
        few = replace(self.options.checking, evidence=None, budget=FEW, explain=False)
        quickly = replace(self, options=replace(self.options, checking=few))

        def is_wrong(names: Sequence[str]) -> bool:
            model = self._optimise(graph, None, names).model
            return not quickly._verify(graph, model, wrong, random).agrees

        return is_wrong

    def _knows_that_it_is_exported(self, failed: Attempt) -> bool:
        """Whether eager gives something else, on the input that failed, where it is told that it is exported."""
        wrong = () if failed.checked is None else failed.checked.differs_on
        if not wrong:
            return False
        state = Snapshot(self.job.model)
        return any(
            knows_that_it_is_exported(lambda given: self._eager(self.job, given, failed.graph, state), values)
            for values in wrong
        )

    def _once_more(
        self, failed: Attempt, examined: Examined, *, libraries: bool = False, exporting: bool = True
    ) -> Attempt:
        """Once more, since something is wrong: with both sides of what libraries decide by free sizes, which was taken
        to be for speed only; or with eager's answer for code that asks whether it is being exported, and computes
        something else then. Where that is no better, the failed attempt, what it kept, and what else was in the way."""
        options = replace(self.options, checking=replace(self.options.checking, evidence=None))
        try:
            again = replace(self, options=options)._attempt(
                examined, libraries, exporting, before=failed.graph if libraries else None
            )
        except ExportError as refused:
            return self._explained(failed).beside(refused.diagnostics)
        if again.failed:
            return self._explained(failed).beside(again.found)
        self._withdraw(failed)
        return again if exporting else replace(again, found=(*again.found, _traced_as_eager()))

    def _explained(self, failed: Attempt) -> Attempt:
        """With all that the check can tell."""
        if failed.explained is None:
            return failed
        self._withdraw(failed)
        return failed.explained()

    def _withdraw(self, failed: Attempt) -> None:
        evidence = self.options.checking.evidence
        if evidence is not None and failed.kept:
            evidence.withdraw()

    def _as_eager_is_told(self, refused: NotCaptured, examined: Examined) -> Attempt:
        """Once more, with eager's answer for code that asks whether it is being exported: a library may have another
        way for exports, and that is no way at all for this model. Where it is not the cause, both are told."""
        try:
            return self._attempt(examined, exporting=False)
        except NotCaptured as again:
            lines = {finding.where for finding in again.diagnostics if finding.is_error}
            more = [finding for finding in refused.diagnostics if finding.is_error and finding.where not in lines]
            raise NotCaptured([*again.diagnostics, *more], again.rewritten) from again.__cause__

    def _look_further(self, examined: Examined) -> Iterator[Diagnostic]:
        """What else stands in the way of a model that eager runs and that is refused already: who mends it wants to
        know all of it at once. A line that has an error needs no second one, and a fault of ours may be a consequence.
        """
        try:
            more: Sequence[Diagnostic] = self._judge(self._capture(examined), examined).diagnostics
        except ExportError as refused:
            more = refused.diagnostics
        told = {(at.file, at.line) for finding in examined.diagnostics if finding.is_error and (at := finding.where)}
        for finding in more:
            at = finding.where
            if finding.is_error and not isinstance(finding, OurFault) and at and (at.file, at.line) not in told:
                yield finding

    # The stages

    def _examine(self) -> Examined:
        with self.watch.stage("examine"):
            seen = examine(self.job, random=self.options.random)
        examined = replace(seen, diagnostics=(*versions_found(), *seen.diagnostics))
        if examined.refused:
            more = self._look_further(examined) if examined.ran else ()
            raise ExportError([*examined.diagnostics, *more])
        return examined

    def _capture(
        self, examined: Examined, libraries: bool = False, exporting: bool = True, before: Graph | None = None
    ) -> Graph:
        with self.watch.stage("capture"), uncollected():
            try:
                calls = bool(self.options.functions)
                return capture(
                    self.job,
                    self._is_leaf,
                    self.options.state,
                    libraries=libraries,
                    calls=calls,
                    exporting=exporting,
                    before=before,
                )
            except ExportError as refused:
                found = [*examined.diagnostics, *placed(refused)]
                raise NotCaptured(found, refused.rewritten) from refused.__cause__

    def _judge(self, graph: Graph, examined: Examined) -> TraceJudged:
        state = self._state

        def refuses(values: Sequence[object]) -> Way | None:
            """Whatever eager raises, the input is none of the model's own."""
            try:
                with within(self._patience()):
                    run_eager(self.job, values, before=state)
            except Exception as error:  # noqa: BLE001  a model may raise anything
                return (type(error), *((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)))
            return None

        with self.watch.stage("judge"):
            return judge_trace(graph, self.job, examined, self.options.state, refuses, self.options.verify)

    def _lower(self, graph: Graph) -> Lowered:
        with self.watch.stage("lower"), uncollected():
            lowered = lower(graph, self.options.opset, self.options.custom)
            if lowered.model is not None:
                describe(lowered.model, graph, self.job, installed_versions()["trueport"], self.noting())
                used = lowered.model.opset_imports
                used.update({name: version for name, version in self.options.domains.items() if name in used})
            return lowered

    def _optimise(self, graph: Graph, lowered: Lowered | None, names: Sequence[str] | None = None) -> Optimised:
        """The passes, and then functions. `lowered` is of no use any more if it has been here already."""
        lowered = lowered or self._lower(graph)
        assert lowered.model is not None, "a graph that was lowered once can be lowered again"

        def anew() -> ir.Model:
            lowered = self._lower(graph).model
            assert lowered is not None, "a graph that was lowered once can be lowered again"
            return lowered

        with self.watch.stage("optimise"), uncollected():
            made = optimised(lowered.model, anew, self.options.passes if names is None else names)
            calls = NamedCalls(graph.calls, lowered.names, self.job.model, self.noting())
            write_functions(made.model, calls, self.options.functions)
            return made

    def _verify(self, graph: Graph, model: ir.Model, judged: TraceJudged, random: bool) -> CheckResult:
        state = self._state
        with self.watch.stage("verify"), unheard(), temporary.folder() as folder:
            path = _written_to_check(model, folder)
            progress.stage("verify")  # the bytes are written
            found = self._checked(path, graph, judged, random, state, closely=False)
            if state.is_written():  # a parameter, behind torch's back: what came after was another model
                state.put_back()
                found = self._checked(path, graph, judged, random, state, closely=True)
            return found

    def _checked(
        self, path: Path, graph: Graph, judged: TraceJudged, random: bool, state: Snapshot, closely: bool
    ) -> CheckResult:
        def eager(values: Sequence[object]) -> Any:
            return self._eager(self.job, values, graph, state, closely)

        if random:
            return check_distribution(path, self.job, graph, eager, self.options.checking.seed)
        return check_exported(
            path,
            self.job,
            graph,
            eager,
            Precisely(self.job, lambda wide, values: self._eager(wide, values, graph)),
            opset=self.options.opset,
            custom=self.options.custom,
            options=self.options.checking,
            judged=judged,
        )

    # What the stages ask

    def _is_leaf(self, op: OpOverload, complex_numbers: bool) -> bool:
        return op in self.options.custom or is_leaf(op, complex_numbers)

    def _eager(
        self, job: Job, values: Sequence[object], graph: Graph, state: Snapshot | None = None, closely: bool = True
    ) -> Any:
        with within(self._patience()):
            return run_with_state(job, values, graph.lifted, state, closely)

    def _patience(self) -> float:
        """How long one run of eager may take: its loops need not end on an input of our making."""
        return _PATIENCE + 20 * self.watch.seconds["examine"]

    @functools.cached_property
    def _state(self) -> Snapshot:
        """What the model was before anybody judged or checked it, which both put it back to: copied once."""
        return Snapshot(self.job.model)

    def _roots(self) -> SourceRoots:
        return self._model_roots

    @functools.cached_property
    def _model_roots(self) -> SourceRoots:
        """One for the whole run: it knows again what it noted, cells of a notebook too."""
        return source_roots(self.job.model, self.options.source_root)


def _draws(found: Sequence[Diagnostic]) -> bool:
    """Whether the model draws random numbers, which are kept."""
    return any(isinstance(finding, RandomKept) for finding in found)


def _traced_as_eager() -> Diagnostic:
    return TakenAs(
        message="the model gives another result where torch.compiler.is_exporting() is True, and was traced as eager",
        fix="let the model compute the same whether or not it is exported: look for is_exporting() and is_compiling()",
    )


def _kept_flags(flags: Sequence[Leaf], refused: ExportError) -> Diagnostic:
    names = [flag.name for flag in flags]
    why = next(finding for finding in refused.diagnostics if finding.is_error)
    return NumberFrozen(
        message=f"{', '.join(f'{flag.path} = {flag.value!r}' for flag in flags)}: kept as in the example, since both "
        "sides do not fit into one model",
        seen=(f"as an input: {why.message}",),
        place=why.place,
        fix=told("export one model for each value that you need; to confirm: ", option("constants", names)),
        severity=Severity.WARNING,
    )


def _is_told(finding: Diagnostic, found: Iterable[Diagnostic]) -> bool:
    """An operator without a translation is met by capture and again by lower."""
    return any(isinstance(finding, type(told)) and finding.where == told.where for told in found)


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
