"""`If` on a constant is the arm that it takes."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph
from trueport.optimise.base import Pass
from trueport.optimise.edits import ValueNames, array_of, graph_of, remove


class ConstantBranches(Pass):
    """Puts an arm in the place of an `If` that always takes it.

    1. The condition is a constant: the nodes of the arm stand where the `If` stood, and what read the results of the
       `If` reads theirs. A result that the model puts out keeps its name; one that the arm only hands through gets an
       `Identity`.
    2. A name of the arm that another value of the graph has, too (both arms may have used it), is made new.
    """

    name: ClassVar[str] = "branches"

    def run(self, model: ir.Model) -> int:
        names = ValueNames(model)
        graphs = list(every_graph(model.graph))  # the outermost first: an arm that moves out takes its own `If`s along
        return sum(_inline(node, names) for graph in graphs for node in list(graph) if _decided(node) is not None)


def _decided(node: ir.Node) -> bool | None:
    test = array_of(node.inputs[0]) if node.op_type == "If" and not node.domain else None
    return None if test is None or test.size != 1 else bool(test.reshape(()))


def _inline(node: ir.Node, names: ValueNames) -> int:
    graph = graph_of(node)
    arm = node.attributes["then_branch" if _decided(node) else "else_branch"].as_graph()
    results = list(arm.outputs)
    for value in list(arm.initializers.values()):
        del arm.initializers[value.name or ""]
        value.name = names.new(value.name or "constant")  # case 2
        graph.register_initializer(value)
    moved = list(arm)
    del node.attributes["then_branch"], node.attributes["else_branch"]
    arm.outputs.clear()
    arm.remove(moved)
    for each in moved:
        for output in each.outputs:
            if output.name:
                output.name = names.new(output.name)  # case 2
    graph.insert_before(node, moved)
    taken: set[ir.Value] = set()
    for output, result in zip(node.outputs, results, strict=True):
        made = result.producer()
        if output.is_graph_output() and (
            made is None or made.graph is not graph or result.is_graph_output() or result in taken
        ):
            copy = ir.Node("", "Identity", [result], metadata_props=dict(node.metadata_props))
            copy.name = f"{node.name}_{output.name}"
            graph.insert_before(node, copy)
            result = copy.outputs[0]
        taken.add(result)
        if output.is_graph_output():
            name, output.name = output.name, None
            result.name, result.type, result.shape = name, output.type, output.shape
        output.replace_all_uses_with(result, replace_graph_outputs=True)
    remove(node)
    return 1
