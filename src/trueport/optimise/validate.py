"""What a model must be after every pass, whatever the pass did.

1. Every value that a node reads is made before it, in its graph or in one around it, or is an input or an initializer
   there. A node and a value belong to one graph.
2. Every output of a graph is made in that graph, and the names of values are unique among all that is visible.
3. The inputs and outputs of the model are those that it had: names, dtypes, and number.
4. Every output of a graph has a dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir


class Broken(Exception):
    """A model that breaks a rule."""


@dataclass(frozen=True)
class Interface:
    """What a pass must leave alone."""

    inputs: tuple[tuple[str | None, ir.DataType | None], ...]
    outputs: tuple[tuple[str | None, ir.DataType | None], ...]

    @classmethod
    def of(cls, model: ir.Model) -> Interface:
        sides = ([(value.name, value.dtype) for value in side] for side in (model.graph.inputs, model.graph.outputs))
        return cls(*map(tuple, sides))


def validate(model: ir.Model, before: Interface) -> None:
    """Raises `Broken` at the first rule that does not hold."""
    if Interface.of(model) != before:  # rule 3
        raise Broken(f"inputs and outputs were {before}, and are {Interface.of(model)}")
    _graph(model.graph, set(), set())


def _graph(graph: ir.Graph, visible: set[ir.Value], names: set[str]) -> None:
    """Down through the graphs with what is visible there; what a graph adds is gone when it ends."""
    own: list[ir.Value] = []
    for value in _given(graph):
        _define(value, visible, names, own)
    for node in graph:
        if node.graph is not graph:  # rule 1
            raise Broken(f"node {node.name} is listed in a graph that it does not belong to")
        for read in node.inputs:
            if read is not None and read not in visible:  # rule 1
                raise Broken(f"node {node.name} ({node.op_type}) reads {read.name}, which nothing makes before it")
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                _graph(attribute.as_graph(), visible, names)
        for value in node.outputs:
            _define(value, visible, names, own)
    made = set(own)
    for value in graph.outputs:  # rule 2
        if value not in made:
            raise Broken(f"{value.name} is an output of {graph.name}, which does not make it")
        if value.type is None:  # rule 4
            raise Broken(f"{value.name} is an output without a dtype")
    visible.difference_update(own)
    names.difference_update(value.name for value in own if value.name)


def _define(value: ir.Value, visible: set[ir.Value], names: set[str], own: list[ir.Value]) -> None:
    if value in visible:  # an initializer that is an input
        return
    if value.name in names:  # rule 2
        raise Broken(f"two values are called {value.name}")
    visible.add(value)
    own.append(value)
    if value.name:
        names.add(value.name)


def _given(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
