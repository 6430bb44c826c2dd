"""What a run of a captured program would show, at given sizes, without a run of it.

Which inputs are tried follows from how much work a run is, how that grows with each free size, and which numbers the
operators are given. Runs of eager under a mode would show it; but a deep model is mostly the mode then, and a wide one
takes as long as the check of another input. Where the graph has neither branches nor loops, it says itself which calls
are made and on which shapes. Layers are alike, so that few calls are distinct, and each of those is made once, on
tensors without memory.

Only the plan of the check follows from it: which inputs are tried. No verdict does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from trueport.decompositions.arguments import mapped
from trueport.graph.regions import Control, Graph, Node, Number, Size, Value, Weight, values_in
from trueport.torch_internals import OpOverload, nothing_to_disable
from trueport.verify.inputs.work import COUNTS, FEW_NUMBERS, Planned, Watched, WatchedAt, work_of


@dataclass(frozen=True, slots=True)
class _Tensor:
    dtype: torch.dtype
    shape: tuple[Size, ...]
    computed: bool
    """Whether inputs, or their sizes, have a part in it."""
    weight: Value | None = None
    """A weight so small that the numbers in it may be limits."""


_NOWHERE = torch.device("meta")
_WORTH_PLANNING = 10_000
"""From so many units of work on it is less work to count the distinct calls of the graph than to run them all."""
_Call = tuple[OpOverload, Any, tuple[tuple[str, Any], ...]]
"""Of one operator: its arguments, and those that it was given by name."""


def watched_at(graph: Graph, worth: float = _WORTH_PLANNING) -> WatchedAt | None:
    """None where what is computed depends on more than sizes, and where eager is quicker."""
    if any(isinstance(node.op, Control) or not _gives_tensors(node) for node in graph.root.nodes):
        return None
    if _least_work(graph) < worth:
        return None
    weights = {weight.value: weight for weight in graph.weights}
    calls = Counter(_calls(graph, weights))

    def at(sizes: Mapping[str, int]) -> Watched | None:
        known = {symbol: sizes[free.name] for symbol, free in graph.size_symbols.items()}
        there = _Sizes({symbol: sympy.sympify(each) for symbol, each in {**graph.examples, **known}.items()})
        watched = Planned()
        make = _Made(there, watched, weights)
        try:
            made = [(mapped(args, make.argument), mapped(named, make.argument)) for _, args, named in calls]
            with torch.no_grad(), nothing_to_disable(), watched:
                for ((op, _, _), watched.times), (args, named) in zip(calls.items(), made, strict=True):
                    op(*args, **dict(named))
        except Exception:  # noqa: BLE001  a size that the data give, or an operator that needs to see them
            return None
        return watched

    return at


def _gives_tensors(node: Node) -> bool:
    """And no number, which Python may do anything with."""
    return all(output is None or isinstance(output, Value) for output in node.outputs)


def _least_work(graph: Graph) -> float:
    """Units of a run on the example, as far as they are told at a glance."""
    there = _Sizes({symbol: sympy.sympify(each) for symbol, each in graph.examples.items()})
    weights = {weight.value: weight.tensor for weight in graph.weights if weight.tensor.dim() > 1}
    elements = flops = 0.0
    for node in graph.root.nodes:
        made = sum(there.elements(output) for output in node.outputs if isinstance(output, Value))
        # the first axis of a weight is mostly that of the outputs, whatever it is the weight of
        meets = [weights[each].numel() / max(len(weights[each]), 1) for each in node.args if each in weights]
        elements, flops = elements + made, flops + 2 * made * sum(meets)
    return work_of(len(graph.root.nodes), elements, flops).units


def _calls(graph: Graph, weights: Mapping[Value, Weight]) -> Iterator[_Call]:
    computed = {each.value for each in graph.inputs if isinstance(each.value, Value)}

    def hashable(argument: Any) -> Any:
        if isinstance(argument, Value):
            small = argument in weights and weights[argument].tensor.numel() <= FEW_NUMBERS
            return _Tensor(argument.dtype, argument.shape, argument in computed, argument if small else None)
        return tuple(map(hashable, argument)) if isinstance(argument, tuple | list) else argument

    for node in graph.root.nodes:
        assert isinstance(node.op, OpOverload)
        read = values_in((node.args, tuple(node.kwargs.values())))
        if node.op.overloadpacket is COUNTS or not computed.isdisjoint(read):
            computed.update(output for output in node.outputs if isinstance(output, Value))
        yield node.op, hashable(node.args), tuple((name, hashable(value)) for name, value in node.kwargs.items())


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What each symbol is, and the expressions that were worked out already."""

    symbols: Mapping[sympy.Basic, Any]
    _found: dict[sympy.Basic, sympy.Basic] = field(default_factory=dict)

    def of(self, expr: sympy.Basic) -> sympy.Basic:
        if expr not in self._found:
            self._found[expr] = expr.xreplace(self.symbols).doit()
        return self._found[expr]

    def shape(self, tensor: Value | _Tensor) -> list[int]:
        return [size if isinstance(size, int) else int(self.of(size)) for size in tensor.shape]

    def elements(self, value: Value) -> int:
        try:
            return math.prod(self.shape(value))
        except TypeError:  # a size that the data give
            return 0


@dataclass(frozen=True, slots=True)
class _Made:
    """Arguments of calls without memory."""

    there: _Sizes
    watched: Planned
    weights: Mapping[Value, Weight]

    def argument(self, argument: Any) -> Any:
        if isinstance(argument, Number):
            return argument.kind(self.there.of(argument.expr))
        if isinstance(argument, _Tensor):
            made = torch.empty(self.there.shape(argument), dtype=argument.dtype, device=_NOWHERE)
            content = None if argument.weight is None else self.weights[argument.weight].tensor
            self.watched.stands_for(made, argument.computed, content)
            return made
        return _NOWHERE if isinstance(argument, torch.device) else argument
