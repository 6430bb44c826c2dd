"""A graph with those inside its nodes (the arms of `If`, the bodies of `Loop` and `Scan`), and how two of its nodes are
kept apart that the runtime would make one, to another result."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def every_graph(graph: ir.Graph) -> Iterator[ir.Graph]:
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from every_graph(attribute.as_graph())


def kept_apart(graph: ir.Graph, value: ir.Value, beside: ir.Node, *, behind: bool = False) -> ir.Value:
    """The same value through a `Sum` of one thing, which no optimiser of ONNX Runtime takes away. It costs a copy."""
    made = ir.Node("", "Sum", [value])
    made.metadata_props.update(beside.metadata_props)
    out = made.outputs[0]
    # Named after its reader: a product may be multiplied by several factors.
    out.name, out.type, out.shape = f"{value.name}_kept_by_{beside.outputs[0].name}", value.type, value.shape
    made.name = f"node_{out.name}"
    (graph.insert_after if behind else graph.insert_before)(beside, made)
    return out
