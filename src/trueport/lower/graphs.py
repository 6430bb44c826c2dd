"""A graph with those inside its nodes: the arms of `If`, the bodies of `Loop` and `Scan`."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def every_graph(graph: ir.Graph) -> Iterator[ir.Graph]:
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from every_graph(attribute.as_graph())
