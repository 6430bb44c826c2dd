"""Nodes and weights that nobody reads are left out of the model.

What the captured program does not need is gone before (graph/tidy.py). But a translation may need less than it is
given: `copy` takes the sizes of a tensor, which may be known, and not its values.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def without_unread(model: ir.Model) -> set[str]:
    """Take unread nodes and weights out of a model, in place; gives the names of the values that went with them."""
    gone = set(_taken_out(model.graph))
    weights = model.graph.initializers
    unread = [name for name, value in weights.items() if not (value.uses() or value.is_graph_output())]
    for name in unread:
        del weights[name]
    return gone.union(unread)


def _taken_out(graph: ir.Graph) -> Iterator[str]:
    """From the last node to the first: what only an unread node reads is unread too.

    They leave the graph together: it looks at all of its outputs each time, and a decoder has two for each layer.
    """
    unread: list[ir.Node] = []
    for node in reversed(list(graph)):
        if not any(output.is_graph_output() or output.uses() for output in node.outputs):
            yield from (output.name for output in node.outputs if output.name)
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
            unread.append(node)
            continue
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _taken_out(attribute.as_graph())
    graph.remove(unread)
