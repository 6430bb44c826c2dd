"""Arms that no input reached, each checked by itself: the runtime against `replay`, on values that come near it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.graph import Control, Graph, Node
from trueport.capture.replay import Replay
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.rules.tp810_arm_not_reached import ArmNotReached
from trueport.rewrite.probe_runtime import Site
from trueport.source import Place, Where
from trueport.verify.compare import judge, tolerance_for
from trueport.verify.localise import Localiser
from trueport.verify.mismatch import Divergence
from trueport.verify.regions import Alone, Recording, alone
from trueport.verify.sandbox import WorkerFailure
from trueport.verify.tally import Decision, way_words
from trueport.verify.trail import Way

_RUNS = 4


@dataclass(frozen=True)
class ArmCheck:
    """Checks what no input reached."""

    graph: Graph
    localiser: Localiser

    def findings(self, decisions: Sequence[Decision], inputs: Sequence[Mapping[str, Any]]) -> list[Diagnostic]:
        """One finding for each way that was never taken. `inputs` are those that were compared, by name."""
        missing = [(decision.site, way) for decision in decisions for way in decision.never_ran]
        return [self._finding(site, way, inputs) for site, way in missing]

    def _finding(self, site: Site, way: Way, inputs: Sequence[Mapping[str, Any]]) -> Diagnostic:
        arms = [(node, alone(self.graph, node.regions[at])) for node, at in self._arms(site, way)]
        agreed = 0
        for node, arm in arms:
            recording = _record(self.graph, node, arm, inputs)
            for given in recording[:_RUNS]:
                told = self._compare(arm, given)
                if isinstance(told, Divergence):
                    return WrongValues(
                        message=f"no input was found for which `{site.text}` {_wanted(site, way)} ({site}), and what "
                        "runs then differs from eager",
                        place=told.place or _place(site),
                        seen=("the arm by itself, on values that came near it", told.fact),
                    )
                agreed += told
        label = f"never {way_words(site, way)}" if not site.kind.is_loop else "never ran"
        return ArmNotReached(
            message=f"no input was found for which `{site.text}` {_wanted(site, way)}",
            place=_place(site),
            label=label,
            seen=(f"by itself it agrees on {agreed} sets of values" if agreed else "it could not be run by itself",),
            fix="give an example that goes this way, or search longer with thorough=True",
            severity=Severity.NOTE if agreed else None,
        )

    def _compare(self, arm: Alone, given: Mapping[str, Any]) -> Divergence | bool:
        """Where it differs; True where nothing does, False where the arm does not run on these values."""
        try:
            expected = Replay().run(arm.graph, given)
        except Exception:  # noqa: BLE001 values that the arm was never meant for; torch raises what it likes
            return False
        try:
            ran = self.localiser.laboratory.run(arm.graph, given)
        except WorkerFailure as failure:
            return Divergence(None, f"ONNX Runtime does not run it: {failure.detail.splitlines()[0]}")
        if ran is None:
            return False
        for name, right in expected.items():
            if isinstance(right, torch.Tensor) and name in ran.outputs:
                tolerance = tolerance_for(right.dtype, self.localiser.working)
                if judge(right, ran.outputs[name], tolerance).difference is not None:
                    return self.localiser.first(arm.graph, given) or Divergence(None, "in its result")
        return True

    def _arms(self, site: Site, way: Way) -> Iterator[tuple[Node, int]]:
        for node in self.graph.root.walk():
            where = node.place.where
            if where is None or where.file != site.file or not site.line <= where.line <= site.end_line:
                continue
            if site.kind.is_loop and node.op is Control.LOOP:
                yield node, 0
            elif not site.kind.is_loop and node.op is Control.IF and way < 2:
                yield node, way


def _record(graph: Graph, node: Node, arm: Alone, inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for given in inputs[:_RUNS]:
        recording = Recording({node: arm})
        recording.run(graph, given)
        found += recording.seen.get(arm, [])
    return found


def _place(site: Site) -> Place:
    return Place((Where(site.file, site.line, site.function),))


def _wanted(site: Site, way: Way) -> str:
    return "runs a single round" if site.kind.is_loop else way_words(site, way)
