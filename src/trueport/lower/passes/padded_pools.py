"""Zeros around a picture stay zeros in the pool behind them.

ONNX Runtime makes a `Pad` by zeros the padding of the pool that reads it. The padding of a maximum is below every
number, so where all is negative, the picture's edge would no longer be 0. The two are kept apart.
"""

from __future__ import annotations

import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph, kept_apart


def keep_padding(model: ir.Model) -> None:
    """Stand between each `Pad` and the `MaxPool` that reads it, in place."""
    for graph in every_graph(model.graph):
        for node in list(graph):
            padded = node.inputs[0] if node.op_type == "MaxPool" and not node.domain else None
            maker = None if padded is None else padded.producer()
            if padded is not None and maker is not None and maker.op_type == "Pad":
                node.replace_input_with(0, kept_apart(graph, padded, node))
