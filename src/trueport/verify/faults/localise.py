"""Where a difference begins: the first operator whose value in the runtime is not the one in `replay`.

Values are tapped in batches, so that a model of a thousand operators takes a few runs. Where the first that differs is
a branch or a loop, the arm that ran, or the first round that went wrong, is looked at as a program of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trueport.graph.regions import Control, Graph, Node, Value
from trueport.verify.decisions.regions import RegionRecording, alone
from trueport.verify.faults.mismatch import Divergence
from trueport.verify.judging.compare import DifferenceKind, judge, tolerance_for
from trueport.verify.replay import Replay
from trueport.verify.runtime.onnx_program import Laboratory
from trueport.verify.runtime.sandbox import WorkerFailure

Given = tuple[Node, list[tuple[Value, torch.Tensor]]]
"""A node and what it gave."""

_BATCH_BYTES = 256 << 20
_BATCH_VALUES = 1000
_ROUNDS = 16
"""How many rounds of a loop are looked at one by one."""


@dataclass(frozen=True)
class Localiser:
    """Follows a difference into a captured graph."""

    laboratory: Laboratory
    working: tuple[torch.dtype, ...]

    @property
    def precision(self) -> float:
        """The rounding step of the coarsest dtype that the model computes in."""
        return max((torch.finfo(dtype).eps for dtype in self.working), default=torch.finfo(torch.float32).eps)

    def first(self, graph: Graph, inputs: Mapping[str, Any], inside: str = "") -> Divergence | None:
        """The first operator that differs on these inputs; None where none does, or the graph does not run."""
        try:
            node = self._first_node(graph, inputs)
        except WorkerFailure:
            return None
        if node is None:
            return None
        deeper = self._inside(graph, node, inputs) if node.regions else None
        return deeper or Divergence(node.place, f"begins at {_named(node)}{inside}")

    def in_loops(self, graph: Graph, inputs: Mapping[str, Any]) -> Divergence | None:
        """The same for a model that does not come back: each round of its loops by itself, as `replay` has them."""
        loops = [node for node in graph.root.nodes if node.op is Control.LOOP]
        return next((found for loop in loops if (found := self._inside(graph, loop, inputs)) is not None), None)

    def _first_node(self, graph: Graph, inputs: Mapping[str, Any]) -> Node | None:
        expected = _Results()
        expected.run(graph, inputs)
        for batch in _batches(expected.by_node):
            wanted = [value for _, pairs in batch for value, _ in pairs]
            ran = self.laboratory.run(graph, inputs, wanted)
            if ran is None:
                return None
            for node, pairs in batch:
                if any(value in ran.tapped and self._differs(right, ran.tapped[value]) for value, right in pairs):
                    return node
        return None

    def _inside(self, graph: Graph, node: Node, inputs: Mapping[str, Any]) -> Divergence | None:
        regions = {region: alone(graph, region) for region in node.regions}
        recording = RegionRecording(rounds=regions, most=_ROUNDS)
        recording.note(graph, inputs)
        for region in node.regions:
            for at, given in enumerate(recording.seen.get(regions[region], ())):
                round_ = f", in round {at + 1} of its loop" if node.op is Control.LOOP else ""
                found = self.first(regions[region].graph, given, round_)
                if found is not None:
                    return found
        return None

    def _differs(self, right: Any, got: Any) -> bool:
        if not isinstance(right, torch.Tensor):
            return False
        tolerance = tolerance_for(right.dtype, self.working)
        difference = judge(right, got, tolerance).difference
        return difference is not None and difference.kind is not DifferenceKind.STRUCTURE


class _Results(Replay):
    """A run that keeps what each node of the outermost region gave."""

    def __init__(self) -> None:
        super().__init__(None)
        self.by_node: list[Given] = []
        self._depth = 0

    def region(self, region: Any) -> list[Any]:
        self._depth += 1
        try:
            return super().region(region)
        finally:
            self._depth -= 1

    def node(self, node: Node) -> Any:
        results = super().node(node)
        if self._depth == 1:
            pairs = [
                (output, result)
                for output, result in zip(node.outputs, results, strict=True)
                if isinstance(output, Value) and isinstance(result, torch.Tensor)
            ]
            self.by_node.append((node, pairs))
        return results


def _batches(by_node: Sequence[Given]) -> Iterator[list[Given]]:
    batch: list[Given] = []
    size = count = 0
    for node, pairs in by_node:
        bytes_ = sum(result.numel() * result.element_size() for _, result in pairs)
        if batch and (size + bytes_ > _BATCH_BYTES or count + len(pairs) > _BATCH_VALUES):
            yield batch
            batch, size, count = [], 0, 0
        batch.append((node, pairs))
        size, count = size + bytes_, count + len(pairs)
    if batch:
        yield batch


def _named(node: Node) -> str:
    module = f" in {node.place.module}" if node.place.module else ""
    name = node.name
    return f"`{name}`{module}"
