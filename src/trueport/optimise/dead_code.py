"""What nobody reads is left out."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph
from trueport.lower.passes.unread import without_unread
from trueport.optimise.base import Pass


class DeadCode(Pass):
    """Takes out what nobody reads.

    1. A node none of whose outputs is read or is an output of its graph; then what only such nodes read.
    2. An initializer that nobody reads, of every graph.
    """

    name: ClassVar[str] = "dead_code"

    def run(self, model: ir.Model) -> int:
        count = len(without_unread(model))  # case 1, and those of the main graph of case 2
        for graph in every_graph(model.graph):
            unread = [name for name, value in graph.initializers.items() if _is_unread(value)]
            for name in unread:
                del graph.initializers[name]
            count += len(unread)
        return count


def _is_unread(value: ir.Value) -> bool:
    return not (value.uses() or value.is_graph_output() or value.is_graph_input())
