"""From the runtime's complaint to the user's line: the node that it names, and the place that the file notes on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport.source import Place, Where

# The ways in which onnxruntime 1.2x names a node, and, where the node has no name, its operator.
_NODE = re.compile(r"""Name:'([^']+)'|node with name '([^']+)'|In Node, \("([^"]+)"|[Nn]ode:? ?\(([^)]+)\)""")
_OPERATOR = re.compile(r"implementation for (\w+)\(|running (\w+) node|operator \((\w+)\)|Op \((\w+)\)")


def origin_of(path: Path, complaint: str) -> Place | None:
    """Where the node that a message speaks of comes from; None where it names none, or several might be meant."""
    try:
        model = onnx.load(path, load_external_data=False)
    except (OSError, DecodeError):
        return None
    nodes = list(_nodes(model))
    for pattern, meant in ((_NODE, _by_name), (_OPERATOR, _by_operator)):
        for match in pattern.finditer(complaint):
            wanted = next(group for group in match.groups() if group)
            places = {place for node in nodes if meant(model, node, wanted) and (place := _place(node))}
            if len(places) == 1:
                return places.pop()
    return None


def _by_name(model: onnx.ModelProto, node: onnx.NodeProto, wanted: str) -> bool:
    return node.name == wanted


def _by_operator(model: onnx.ModelProto, node: onnx.NodeProto, wanted: str) -> bool:
    """The operator itself, or a call of a function that holds it."""
    if node.op_type == wanted:
        return True
    return any(
        (function.domain, function.name) == (node.domain, node.op_type)
        and any(inner.op_type == wanted for inner in function.node)
        for function in model.functions
    )


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                pending.extend(graph.node)


def _place(node: onnx.NodeProto) -> Place | None:
    notes = {entry.key: entry.value for entry in node.metadata_props}
    file, _, line = notes.get("trueport.source", "").rpartition(":")
    if not line.isdecimal():
        return None
    return Place((Where(file, int(line)),), notes.get("trueport.module", ""))
