"""What is computed twice is computed once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable
from typing import ClassVar

import onnx_ir as ir

from trueport.lower.noted import note_shared
from trueport.optimise.base import Pass
from trueport.optimise.edits import remove

_DRAWING = frozenset(
    ("RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Multinomial", "Bernoulli", "Dropout")
)
_SMALL = 256
"""Bytes of an attribute that is compared."""


class CommonSubexpressions(Pass):
    """Computes once what would be computed twice.

    1. Two nodes of one operator, of the standard domain, with the same inputs, attributes and outputs are one.
    2. A node in the body of an `If` or a `Loop` is the same as one of a graph around it, that stands before.

    Left alone: what draws random numbers, what has graphs of its own, and what is an output of an inner graph, which
    that graph must make itself. The first node stays, with its line of source.
    """

    name: ClassVar[str] = "common"

    def run(self, model: ir.Model) -> int:
        return _shared(model.graph, ChainMap())


def _shared(graph: ir.Graph, known: ChainMap[Hashable, ir.Node]) -> int:
    count = 0
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                count += _shared(attribute.as_graph(), known.new_child())  # case 2
        key = _key(node)
        if key is None:
            continue
        first = known.get(key)
        if first is None:
            known[key] = node
        elif not any(output.is_graph_output() for output in node.outputs):  # case 1
            _replace(node, first)
            count += 1
    return count


def _key(node: ir.Node) -> Hashable | None:
    if node.domain or node.op_type in _DRAWING or not node.inputs:
        return None
    attributes: list[tuple[str, Hashable]] = []
    for name, attribute in sorted(node.attributes.items()):
        content = _content(attribute)
        if content is None:
            return None
        attributes.append((name, content))
    outputs = tuple(bool(output.name) for output in node.outputs)
    return node.op_type, node.overload, tuple(node.inputs), tuple(attributes), outputs


def _content(attribute: ir.Attr) -> Hashable | None:
    if attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return None
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        if tensor.nbytes > _SMALL or tensor.dtype == ir.DataType.STRING:
            return None
        return int(tensor.dtype), tuple(tensor.shape.numpy()), tensor.tobytes()
    if isinstance(value, float):
        return attribute.type, value.hex()
    if isinstance(value, int | str | bytes):
        return attribute.type, value
    if attribute.type in (ir.AttributeType.INTS, ir.AttributeType.STRINGS):
        return attribute.type, tuple(value)
    if attribute.type == ir.AttributeType.FLOATS:
        return attribute.type, tuple(each.hex() for each in attribute.as_floats())
    return None


def _replace(node: ir.Node, first: ir.Node) -> None:
    for output, same in zip(node.outputs, first.outputs, strict=True):
        if same.shape is None:
            same.shape = output.shape
        output.replace_all_uses_with(same)
    note_shared(first)
    remove(node)
