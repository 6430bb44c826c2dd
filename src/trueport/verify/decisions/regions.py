"""An arm or a loop body as a program of its own, and what it was given when the whole program ran.

Lets an arm that no input reaches be checked by itself, and a difference inside an arm or a loop be followed to its
line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from trueport.graph.regions import Control, Graph, GraphInput, GraphOutput, Node, Number, Region, Size, Value
from trueport.verify.replay import Replay


@dataclass(frozen=True, eq=False)
class Alone:
    """A region as a graph whose inputs are the values and sizes that it takes from the scopes around it."""

    graph: Graph
    reads: Mapping[str, Value | sympy.Symbol]

    def given(self, run: Replay) -> dict[str, Any] | None:
        """What the region reads at this moment of a run; None where something of it is not known yet."""
        found: dict[str, Any] = {}
        for name, source in self.reads.items():
            if isinstance(source, Value):
                if source not in run.tensors:
                    return None
                found[name] = run.tensors[source]
            else:
                number = run.symbols.get(source)
                if number is None:
                    return None
                found[name] = int(number) if source.is_integer else float(number)
        return found


def alone(whole: Graph, region: Region) -> Alone:
    """The region with everything that it reads as inputs, parameters included. Weights stay weights."""
    uses = _Uses()
    uses.region(region, outermost=True)
    weights = {weight.value for weight in whole.weights}
    values = [value for value in uses.read if value not in uses.made and value not in weights]
    inputs: list[GraphInput] = []
    reads: dict[str, Value | sympy.Symbol] = {}
    on_axes: set[sympy.Basic] = set()
    for value in values:
        name = f"value_{len(inputs)}"
        inputs.append(GraphInput(name, value))
        reads[name] = value
        on_axes |= {size for size in value.shape if isinstance(size, sympy.Symbol)}
    for symbol in sorted(uses.symbols - uses.bound - on_axes, key=str):
        name = f"number_{len(inputs)}"
        inputs.append(GraphInput(name, Number(symbol, int if symbol.is_integer else float)))
        reads[name] = symbol
    outputs = [GraphOutput(f"result_{at}", value) for at, value in enumerate(region.outputs)]
    root = Region([given.value for given in inputs], list(region.nodes), list(region.outputs))
    graph = replace(whole, inputs=tuple(inputs), outputs=tuple(outputs), root=root, lifted={}, state={})
    return Alone(graph, reads)


@dataclass
class _Uses:
    """What a region reads and makes, in the order of reading."""

    read: dict[Value, None] = field(default_factory=dict)
    made: set[Value] = field(default_factory=set)
    symbols: set[sympy.Symbol] = field(default_factory=set)
    bound: set[sympy.Symbol] = field(default_factory=set)

    def region(self, region: Region, outermost: bool = False) -> None:
        for param in region.params:
            if outermost:
                self._reads(param)
            else:
                self._makes(param)
        for node in region.nodes:
            self._node(node)
        self._reads(region.outputs)

    def _node(self, node: Node) -> None:
        self._reads(node.args)
        self._reads(tuple(node.kwargs.values()))
        for inner in node.regions:
            self.region(inner)
        for output in node.outputs:
            self._makes(output)

    def _reads(self, argument: Any) -> None:
        if isinstance(argument, Value):
            self.read.setdefault(argument)
            self.symbols |= _symbols(argument.shape)
        elif isinstance(argument, Number):
            self.symbols |= argument.expr.free_symbols
        elif isinstance(argument, tuple | list):
            for item in argument:
                self._reads(item)

    def _makes(self, output: Value | Number | None) -> None:
        """Symbols that first appear on an output are bound by it; others must be known before."""
        if isinstance(output, Value):
            self.made.add(output)
            new = _symbols(output.shape) - self.symbols
            self.bound |= {size for size in output.shape if isinstance(size, sympy.Symbol) and size in new}
            self.symbols |= _symbols(output.shape)
        elif isinstance(output, Number):
            self.bound |= output.expr.free_symbols - self.symbols
            self.symbols |= output.expr.free_symbols


def _symbols(shape: tuple[Size, ...]) -> set[sympy.Symbol]:
    return {symbol for size in shape if isinstance(size, sympy.Expr) for symbol in size.free_symbols}


class _SeenEnough(Exception):
    """As many rounds were noted as are looked at; the loop may have no end."""


class RegionRecording(Replay):
    """A run that notes what regions would be given: an arm whenever its node is met, a body in each of its rounds.

    It ends after as many rounds as are noted.
    """

    def __init__(
        self,
        arms: Mapping[Node, Sequence[Alone]] | None = None,
        rounds: Mapping[Region, Alone] | None = None,
        most: int = 8,
    ) -> None:
        super().__init__(None)
        self._arms, self._rounds, self._most = arms or {}, rounds or {}, most
        self._begun = 0
        self.seen: dict[Alone, list[dict[str, Any]]] = {}

    def note(self, graph: Graph, inputs: Mapping[str, Any]) -> None:
        """Run a graph as far as there is something to note."""
        with contextlib.suppress(_SeenEnough):
            self.run(graph, inputs)

    def node(self, node: Node) -> Any:
        if node in self._arms:
            if node.op is Control.LOOP:  # as its first round would find it
                _, _, *carried = node.args
                for param, first in zip(node.regions[0].params, [0, *(self.read(c) for c in carried)], strict=True):
                    self.bind(param, first)
            for arm in self._arms[node]:
                self._note(arm)
        return super().node(node)

    def region(self, region: Region) -> list[Any]:
        if region in self._rounds:
            if self._begun == self._most:
                raise _SeenEnough
            self._begun += 1
            self._note(self._rounds[region])
        return super().region(region)

    def _note(self, region: Alone) -> None:
        noted = self.seen.setdefault(region, [])
        if len(noted) < self._most and (given := region.given(self)) is not None:
            noted.append(given)
