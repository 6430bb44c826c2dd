"""Functions as a stage of an export, on the model that the passes left.

What is computed stays what it was, node by node: functions written out again give the same graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir
import torch

from trueport.functions.asked import Wanted
from trueport.functions.blocks import Block, Layout, graphs_of, is_constant, laid_out
from trueport.functions.bodies import DOMAIN, Bodies, constant_of
from trueport.functions.kinds import kinds_of
from trueport.graph.regions import ModuleCall, Value
from trueport.lower.noted import CALL, Scopes
from trueport.source import SourceRoots


@dataclass(frozen=True)
class NamedCalls:
    """What is known of the calls of modules."""

    calls: tuple[ModuleCall, ...]
    names: Mapping[Value, str]
    """What captured values are called in the model."""
    model: torch.nn.Module
    roots: SourceRoots | None
    """How lines of the source are noted; None where they are not."""


def write_functions(model: ir.Model, noted: NamedCalls, wanted: Wanted) -> None:
    """Make functions of a model's blocks, in place."""
    if not wanted:
        return
    layout = laid_out(model.graph, noted.calls, None if wanted is True else wanted)
    kinds, known = kinds_of(layout)
    imports = {**model.opset_imports, DOMAIN: 1}
    bodies = Bodies(layout, known, imports, noted.names, Scopes(noted.model), noted.roots)
    for kind in kinds:
        bodies.write(kind)
    _put_in_place(model.graph, layout, bodies)
    for body in bodies.bodies.values():
        model.functions[body.function.identifier()] = body.function
    if kinds:
        model.opset_imports[DOMAIN] = 1
    for graph in model.graphs():
        for node in graph:
            node.metadata_props.pop(CALL, None)


def _put_in_place(main: ir.Graph, layout: Layout, bodies: Bodies) -> None:
    """Calls instead of the blocks that are not inside of others."""
    now: dict[ir.Value, ir.Value] = {}
    names: set[str] = set()
    constants: list[ir.Value] = []

    def made(value: ir.Value) -> ir.Value:
        new = now[value] = ir.Value(name=value.name, type=value.type, shape=value.shape)
        return new

    def settle(graph: ir.Graph) -> None:
        order: list[ir.Node] = []
        gone: list[Block] = []
        for item in layout.items[graph]:
            if isinstance(item, ir.Node):
                order.append(item)
                for inner in graphs_of(item):
                    settle(inner)
                continue
            known = bodies.known[item]
            constants.extend(value for value in known.given if constant_of(value) is not None)
            node = bodies.call(item, lambda value: now.get(value, value), made)
            stem, count = node.name or "", 0
            while node.name in names:
                count += 1
                node.name = f"{stem}_{count}"
            names.add(node.name or "")
            order.append(node)
            gone.append(item)
        if gone:
            _rearranged(graph, order, gone, now)

    settle(main)
    for value in constants:
        _remove_unread(value)


def _rearranged(graph: ir.Graph, order: list[ir.Node], gone: list[Block], now: Mapping[ir.Value, ir.Value]) -> None:
    for block in gone:
        for node in block.nodes:
            for output in node.outputs:
                if (new := now.get(output)) is not None:
                    output.replace_all_uses_with(new, replace_graph_outputs=True)
                    output.name = None
    for block in gone:
        for node in block.every_node():
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
    graph.remove(list(graph))
    graph.extend(order)


def _remove_unread(value: ir.Value) -> None:
    """A constant that now stands in functions only."""
    if value.uses() or value.is_graph_output() or value.is_graph_input():
        return
    maker = value.producer()
    if maker is not None:
        if maker.graph is not None and is_constant(maker):
            maker.graph.remove(maker, safe=True)
    elif value.graph is not None and value.name is not None and value.name in value.graph.initializers:
        del value.graph.initializers[value.name]
