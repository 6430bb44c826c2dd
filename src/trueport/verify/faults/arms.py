"""Arms that no input reached, each checked by itself: the runtime against `replay`, on values that come near it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.rules.tp810_arm_not_reached import ArmNotReached
from trueport.diagnostics.spelling import option, told
from trueport.graph.regions import Control, Graph, Node
from trueport.rewrite.running.probe_runtime import Site
from trueport.source import Place, Where
from trueport.verify.decisions.regions import Alone, RegionRecording, alone
from trueport.verify.decisions.tally import Decision, way_words
from trueport.verify.decisions.trail import Way
from trueport.verify.faults.localise import Localiser
from trueport.verify.faults.mismatch import Divergence
from trueport.verify.judging.compare import Expected, judge, tolerance_for
from trueport.verify.judging.sensitivity import excuse
from trueport.verify.replay import Replay
from trueport.verify.runtime.onnx_program import Ran
from trueport.verify.runtime.sandbox import WorkerFailure

_RUNS = 4
_LARGEST = 1e9


class _Arm(NamedTuple):
    """The region of a node that a way leads into."""

    node: Node
    at: int


@dataclass(frozen=True)
class _Wanted:
    """A way to check, all the arms that it is, and whether some input has taken it."""

    site: Site
    way: Way
    reached: bool
    arms: tuple[_Arm, ...]


_Given = Mapping[_Arm, tuple[Alone, list[dict[str, Any]]]]
"""Each arm as a program of its own, with the values to run it on."""


@dataclass(frozen=True)
class ArmCheck:
    """Checks what no input reached, and what few did, in so many runs."""

    graph: Graph
    localiser: Localiser
    runs: int

    def findings(self, decisions: Sequence[Decision], inputs: Sequence[Mapping[str, Any]]) -> list[Diagnostic]:
        """One finding for each way that was never taken, and for what is wrong with one that few inputs took: those may
        all lie where right and wrong are the same. `inputs` are those that were compared, by name.
        """
        left = itertools.count(self.runs, -1)
        never = [_Wanted(d.site, way, False, tuple(self._arms(d.site, way))) for d in decisions for way in d.never_ran]
        hardly = [_Wanted(d.site, way, True, tuple(self._arms(d.site, way))) for d in decisions for way in d.hardly_ran]
        given = self._record([arm for wanted in (*never, *hardly) for arm in wanted.arms], inputs)
        found = [self._finding(wanted, given, left) for wanted in (*never, *hardly)]
        return [finding for finding in found if finding is not None]

    def _record(self, arms: Iterable[_Arm], inputs: Sequence[Mapping[str, Any]]) -> _Given:
        """What each of the arms is given on these inputs, all of them from the same runs."""
        regions = {arm: alone(self.graph, arm.node.regions[arm.at]) for arm in arms}
        by_node: dict[Node, list[Alone]] = {}
        for arm, region in regions.items():
            by_node.setdefault(arm.node, []).append(region)
        seen: dict[Alone, list[dict[str, Any]]] = {region: [] for region in regions.values()}
        for given in inputs[:_RUNS] if regions else ():
            recording = RegionRecording(by_node)
            recording.run(self.graph, given)
            for region, values in recording.seen.items():
                seen[region] += values
        return {arm: (region, seen[region][:_RUNS]) for arm, region in regions.items()}

    def _finding(self, wanted: _Wanted, given: _Given, left: Iterator[int]) -> Diagnostic | None:
        site, way, reached = wanted.site, wanted.way, wanted.reached
        outcomes = self._outcomes(wanted.arms, given, left)
        wrong = next((outcome for outcome in outcomes if isinstance(outcome, Divergence)), None)
        if wrong is not None:
            few = "few inputs were found" if reached else "no input was found"
            return WrongValues(
                message=f"{few} for which `{site.text}` {_wanted(site, way)}, and what runs then differs from eager",
                place=wrong.place or _place(site),
                seen=("the arm by itself, on values that came near it", wrong.fact, f"decided at {site}"),
            )
        return None if reached else _not_reached(wanted, outcomes)

    def _outcomes(self, arms: Iterable[_Arm], given: _Given, left: Iterator[int]) -> list[Divergence | bool]:
        """One line may be several arms: of layers that share it, or of a loop that was unrolled."""
        outcomes: list[Divergence | bool] = []
        for arm in arms:
            if next(left) < 0:
                break
            region, values = given[arm]
            try:
                with self.localiser.laboratory.opened(region.graph) as run:
                    outcomes += [run is not None and self._compare(region, run, each) for each in values]
            except WorkerFailure as failure:
                outcomes.append(_does_not_run(failure))
        return outcomes

    def _compare(
        self, arm: Alone, run: Callable[[Mapping[str, Any]], Ran], given: Mapping[str, Any]
    ) -> Divergence | bool:
        """Where it differs; True where nothing does, False where the values are none that it was meant for."""
        try:
            expected = Replay().run(arm.graph, given)
        except Exception:  # noqa: BLE001 torch raises what it likes
            return False
        if not all(_is_ordinary(value) for value in (*given.values(), *expected.values())):
            return False
        try:
            ran = run(given)
        except WorkerFailure as failure:
            return _does_not_run(failure)
        right = {name: value for name, value in expected.items() if isinstance(value, torch.Tensor)}
        got = [ran.outputs[name] for name in right]
        tolerances = [tolerance_for(value.dtype, self.localiser.working) for value in right.values()]
        if all(judge(*each).difference is None for each in zip(right.values(), got, tolerances, strict=True)):
            return True

        def again(values: Sequence[object]) -> tuple[list[Expected], frozenset[object]]:
            outputs = Replay().run(arm.graph, dict(zip(given, values, strict=True)))
            return [outputs[name] for name in right], frozenset()

        values = tuple(given.values())
        if excuse(again, values, tuple(right.values()), got, tolerances, self.localiser.precision, seed=0):
            return True  # the arm rounds more often than a tolerance knows, or throws dice
        return self.localiser.first(arm.graph, given) or Divergence(None, "in its result")

    def _arms(self, site: Site, way: Way) -> Iterator[_Arm]:
        for node in self.graph.root.walk():
            where = node.place.where
            if where is None or where.file != site.file or not site.line <= where.line <= site.end_line:
                continue
            if site.kind.is_loop and node.op is Control.LOOP:
                yield _Arm(node, 0)
            elif not site.kind.is_loop and node.op is Control.IF and way < 2:
                yield _Arm(node, way)


def _is_ordinary(value: Any) -> bool:
    """Whether a value is one on which torch and ONNX define the same: not empty, no infinity, nothing too large."""
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.numel() == 0):
        return not isinstance(value, float) or abs(value) < _LARGEST
    return value.numel() > 0 and bool((value.abs() < _LARGEST).all())


def _does_not_run(failure: WorkerFailure) -> Divergence:
    return Divergence(None, f"ONNX Runtime does not run it: {failure.detail.splitlines()[0]}")


def _not_reached(wanted: _Wanted, outcomes: Sequence[Divergence | bool]) -> Diagnostic:
    site, way, agreed = wanted.site, wanted.way, outcomes.count(True)
    if agreed:
        seen = f"by itself it agrees on {agreed} sets of values"
    elif not wanted.arms:
        seen = "the graph has no arm for it that could be run by itself"
    else:
        seen = "it could not be run by itself" if outcomes else "too many arms were not reached to run each by itself"
    return ArmNotReached(
        message=f"no input was found for which `{site.text}` {_wanted(site, way)}",
        place=_place(site),
        label="never ran" if site.kind.is_loop else f"never {way_words(site, way)}",
        seen=(seen,),
        fix=told("give an example that goes this way, or search longer with ", option("thorough", True)),
        severity=Severity.NOTE if agreed else None,
    )


def _place(site: Site) -> Place:
    return Place((Where(site.file, site.line, site.function),))


def _wanted(site: Site, way: Way) -> str:
    return "runs a single round" if site.kind.is_loop else way_words(site, way)
