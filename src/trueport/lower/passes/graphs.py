"""A graph with those inside its nodes (the arms of `If`, the bodies of `Loop` and `Scan`), the constants among its
values, and how two of its nodes are kept apart that the runtime would make one, to another result."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from trueport.lower.weights import WeightTensor

_HOLDING = frozenset(("If", "Loop", "Scan", "SequenceMap"))
"""The operators of the standard domain that have graphs inside. Passes go through all nodes many times: attributes of
the others are not looked at."""


def every_graph(graph: ir.Graph) -> Iterator[ir.Graph]:
    yield graph
    for node in graph:
        if node.op_type not in _HOLDING and not node.domain:
            continue
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from every_graph(attribute.as_graph())


_SMALL = 1 << 10
"""Elements of a constant that somebody may look at."""


def numbers_of(value: ir.Value | None, *, weights: bool = False) -> list[float] | None:
    """The content of a small constant of the graph, a node or an initializer, flat; None where the value is computed,
    or is a weight of the model and those are not asked for."""
    content = None if value is None else value.const_value
    maker = None if value is None else value.producer()
    if content is None and maker is not None and maker.op_type == "Constant" and "value" in maker.attributes:
        content = maker.attributes["value"].as_tensor()
    if content is None or content.size > _SMALL or (isinstance(content, WeightTensor) and not weights):
        return None
    return content.numpy().reshape(-1).tolist()


def number_of(value: ir.Value | None, *, weights: bool = False) -> float | None:
    """The content of a constant that is one number."""
    found = numbers_of(value, weights=weights)
    return float(found[0]) if found is not None and len(found) == 1 else None


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
