"""What every round of a loop computes alike is computed once, before it."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from trueport.optimise.base import Pass
from trueport.optimise.edits import dims_of, graph_of

_TOTAL = frozenset(
    "Shape Size Cast Transpose Unsqueeze Neg Abs Not Sqrt Reciprocal Exp Log Sigmoid Tanh Relu Erf Sin Cos Floor Ceil "
    "Softmax IsNaN IsInf Identity".split()
)
"""Operators that have a result for everything that they may be given."""
_TOTAL_IF_THEY_FIT = frozenset(
    "Add Sub Mul And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual Where Max Min MatMul".split()
)
"""The same, for operands whose sizes fit each other."""


class LoopInvariants(Pass):
    """Moves what does not change between rounds out of loops.

    1. A node of the body of a `Loop` that reads nothing of the body stands before the `Loop`. Makers come before
       readers, so what reads only such nodes follows. Inner loops come first, so a node may leave several.
    2. A loop may make no round. Then the node is computed for nothing, so it must not be able to fail: only operators
       that have a result for everything, and where several operands meet, only if their declared sizes fit.
       A `Gather`, a `Reshape`, a division of integers stay.
    3. Nodes in an `If` stay, since its arm may never run. Outputs of the body stay, since it must make them.
    """

    name: ClassVar[str] = "loop_invariants"

    def run(self, model: ir.Model) -> int:
        return _hoisted(model.graph)


def _hoisted(graph: ir.Graph) -> int:
    count = 0
    for node in graph:
        for attribute in list(node.attributes.values()):
            if attribute.type == ir.AttributeType.GRAPH:
                inner = attribute.as_graph()
                count += _hoisted(inner)  # case 1: inner loops first
                if node.op_type == "Loop" and not node.domain:
                    count += _out_of(inner, node)
    return count


def _out_of(body: ir.Graph, loop: ir.Node) -> int:
    inside = {*body.inputs, *body.initializers.values()}
    leaving = []
    for node in body:
        if _may_leave(node) and not any(value in inside for value in node.inputs):
            leaving.append(node)
        else:
            inside.update(node.outputs)
    for node in leaving:
        body.remove(node)
        graph_of(loop).insert_before(loop, node)
    return len(leaving)


def _may_leave(node: ir.Node) -> bool:
    if node.domain or not node.inputs or any(output.is_graph_output() for output in node.outputs):  # case 3
        return False
    if node.op_type in _TOTAL:  # case 2
        return True
    return node.op_type in _TOTAL_IF_THEY_FIT and _fit(node)


def _fit(node: ir.Node) -> bool:
    """Whether operands meet without an error, by what is declared of them."""
    every = [dims_of(value) for value in node.inputs if value is not None]
    dims = [each for each in every if each is not None]
    if len(dims) < len(every):
        return False
    if node.op_type == "MatMul":
        one, other = dims
        return len(one) > 1 and len(other) == 2 and one[-1] == other[0]
    longest = max(len(each) for each in dims)
    by_axis = ({each[-axis] for each in dims if len(each) >= axis} for axis in range(1, longest + 1))
    return all(len(met - {1}) <= 1 for met in by_axis)
