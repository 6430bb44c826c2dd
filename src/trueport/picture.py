"""The exported graph for the report: read from the ONNX model and the notes on its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx_ir as ir

from trueport.functions.blocks import graphs_of
from trueport.lower.noted import MODULE, OP, noted_place
from trueport.report import GraphSummary, NodeSummary
from trueport.source import SourceRoots, Where

_SHOWN = 6
"""Numbers of a constant that are told."""

Read = Callable[[ir.Node], Where | None]
Functions = Mapping[ir.OperatorIdentifier, ir.Graph]


def pictured(model: ir.Model, roots: SourceRoots | None) -> GraphSummary:
    """The graph of a model of ours. `roots` are those of its notes; without them, no node has a line."""

    def read(node: ir.Node) -> Where | None:
        place = noted_place(node.metadata_props)
        if roots is None or place is None or place.where is None:
            return None
        found = roots.find(place.where.file)
        return Where(found or place.where.file, place.where.line, readable=found is not None)

    return _graph(model.graph, read, {function.identifier(): function.graph for function in model.functions.values()})


def _graph(graph: ir.Graph, read: Read, functions: Functions) -> GraphSummary:
    values = [*graph.inputs, *graph.initializers.values(), *(out for node in graph for out in node.outputs)]
    return GraphSummary(
        graph.name or "",
        tuple(value.name or "" for value in graph.inputs),
        tuple(value.name or "" for value in graph.outputs),
        tuple(_node(node, read, functions) for node in graph),
        {value.name or "": text for value in values if (text := _type(value))},
    )


def _node(node: ir.Node, read: Read, functions: Functions) -> NodeSummary:
    return NodeSummary(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
        node.name or "",
        tuple("" if value is None else value.name or "" for value in node.inputs),
        tuple(value.name or "" for value in node.outputs),
        node.metadata_props.get(MODULE, ""),
        read(node),
        node.metadata_props.get(OP, ""),
        _constant(node),
        tuple(_graph(body, read, functions) for body in _bodies(node, functions)),
    )


def _bodies(node: ir.Node, functions: Functions) -> Iterator[ir.Graph]:
    """The graphs inside of a node, or of the function that it calls."""
    if (body := functions.get(node.op_identifier())) is not None:
        yield body
    yield from graphs_of(node)


def _constant(node: ir.Node) -> str:
    if node.op_type != "Constant" or node.domain:
        return ""
    held = next(iter(node.attributes.values()), None)
    value = None if held is None else held.value
    if not isinstance(value, ir.TensorProtocol):
        return str(value)[:40]
    if value.dtype is ir.DataType.STRING or value.size > _SHOWN:
        return f"{value.size} values"
    return np.array2string(value.numpy(), separator=", ", precision=4)


def _type(value: ir.Value) -> str:
    if value.dtype is None:
        return ""
    shape = "" if value.shape is None else f"[{', '.join(_size(size) for size in value.shape)}]"
    text = value.dtype.numpy().name + shape
    return f"sequence of {text}" if isinstance(value.type, ir.SequenceType) else text


def _size(size: int | ir.SymbolicDim) -> str:
    known = size if isinstance(size, int) else size.value
    return "?" if known is None else str(known)
