"""Quantised models jump from step to step, and a sum that another order of adding moves by its last bit may jump.

How far such jumps carry is measured: the captured graph is run with the numbers moved by a share of a step before each
of its roundings. What one jump can do to an element is then allowed each element, and what all of them do to the sum of
the errors is allowed that sum, so that an error that is in every element still shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from trueport.graph.regions import Graph, Node
from trueport.torch_internals import OpOverload
from trueport.verify.judging.compare import Expected, Judgement, Tolerance, as_float64, judge, of_items
from trueport.verify.replay import Replay
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, to_torch

Answers = Callable[[Sequence[object]], list[list[Any]]]
"""What the model gives on an input where its roundings fall otherwise: several answers, one value per output each."""

_SHARE = 0.1
_RUNS = 8
_TIMES = 2.0
_ROUNDS = ("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")
_LEARNT = ("_fake_quantize_learnable_per_tensor_affine", "_fake_quantize_learnable_per_channel_affine")
_DECOMPOSED = ("quantize_per_tensor", "quantize_per_channel")


def moved_steps(
    graph: Graph, by_name: Callable[[Sequence[object]], Mapping[str, Any]], outputs: Sequence[str], seed: int
) -> Answers | None:
    """None where the graph rounds to no steps."""
    if not any(_rounds(node) for node in graph.root.walk()):
        return None

    def answers(values: Sequence[object]) -> list[list[Any]]:
        chance = torch.Generator().manual_seed(seed)
        runs = [_Moved(chance).run(graph, by_name(values)) for _ in range(_RUNS)]
        return [[run[name] for name in outputs] for run in runs]

    return answers


def _rounds(node: Node) -> bool:
    return isinstance(node.op, OpOverload) and node.op.overloadpacket.__name__ in (*_ROUNDS, *_LEARNT, *_DECOMPOSED)


class _Moved(Replay):
    def __init__(self, chance: torch.Generator) -> None:
        super().__init__()
        self._chance = chance

    def node(self, node: Node) -> Sequence[Any]:
        if not _rounds(node):
            return super().node(node)
        assert isinstance(node.op, OpOverload)
        x, scale, *rest = self.read(node.args)
        step = scale if isinstance(scale, float) else float(scale.abs().mean())
        moves = torch.rand(x.shape, generator=self._chance, dtype=torch.float64) * 2 - 1
        return (node.op(x + (moves * _SHARE * step).to(x.dtype), scale, *rest),)


def judged_by_steps(
    expected: Sequence[Expected],
    others: Sequence[Sequence[Any]],
    got: Sequence[RuntimeValue],
    tolerances: Sequence[Tolerance],
) -> tuple[Judgement, ...]:
    """Judge again, with what the roundings may do allowed."""
    return tuple(
        _judged(one, [other[at] for other in others], got[at], tolerances[at]) for at, one in enumerate(expected)
    )


def _judged(expected: Expected, others: Sequence[Any], got: RuntimeValue, tolerance: Tolerance) -> Judgement:
    plain = judge(expected, got, tolerance)
    if isinstance(expected, Sequence) and isinstance(got, tuple) and len(got) == len(expected):
        alike = [other for other in others if len(other) == len(expected)]
        columns = enumerate(zip(expected, got, strict=True))
        return of_items([_judged(one, [other[at] for other in alike], its, tolerance) for at, (one, its) in columns])
    if (
        plain.difference is None
        or not others
        or not isinstance(expected, torch.Tensor)
        or not isinstance(got, TensorData)
    ):
        return plain
    if tuple(expected.shape) != got.shape or not expected.is_floating_point():
        return plain
    centre = as_float64(expected.detach())
    moves = torch.stack([(as_float64(other) - centre).abs() for other in others]).flatten(1)
    error = (as_float64(to_torch(got)) - centre).abs()
    jump = float(moves.max())
    if float(error.sum()) > _TIMES * float(moves.sum(1).max()) + jump + float(tolerance.allowed(centre).sum()):
        return plain
    return judge(expected, got, tolerance, torch.full_like(centre, _TIMES * jump))
