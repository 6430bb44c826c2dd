"""What a pass is, and what a pass that goes from node to node is."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph
from trueport.optimise.edits import ValueNames, replaced


class Pass(abc.ABC):
    """Changes a model in place, and says how often. The first line of its docstring says what it does."""

    name: ClassVar[str]
    """As users write it: `--passes`."""

    @abc.abstractmethod
    def run(self, model: ir.Model) -> int:
        """Returns how many changes were made; 0 only where the model is as it was."""


Rule = Callable[[ir.Node], ir.Value | bool | None]
"""A case of a pass. It gives the value that is the same as the node's first output; or True where it has changed the
node itself; or nothing."""


class NodeByNode(Pass):
    """A pass that looks at each node once, makers before readers, so that a reader meets what became of its makers."""

    names: ValueNames
    opset: int

    @property
    @abc.abstractmethod
    def rules(self) -> Mapping[str, Rule]:
        """By operator of the standard domain."""

    def run(self, model: ir.Model) -> int:
        self.names, self.opset = ValueNames(model), model.graph.opset_imports.get("", 0)
        rules = self.rules
        return sum(self._apply(node, rules) for graph in every_graph(model.graph) for node in graph)

    def _apply(self, node: ir.Node, rules: Mapping[str, Rule]) -> bool:
        rule = None if node.domain else rules.get(node.op_type)
        found = None if rule is None else rule(node)
        if isinstance(found, ir.Value):
            return replaced(node, found)
        return bool(found)


def nodes_of(model: ir.Model) -> Iterator[ir.Node]:
    for graph in every_graph(model.graph):
        yield from graph
