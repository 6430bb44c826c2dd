"""`as_strided` speaks of the memory behind a tensor; a graph has values only, laid out as they are read.

Both are the same where the tensor is all of its memory, in order: an input or a weight as it is, or what an operator
computed. A view of something else is refused: its memory holds more than its value.
"""

from __future__ import annotations

import torch

from trueport.capture.graph import Control, Node
from trueport.capture.shapes import CannotBeCarried

aten = torch.ops.aten

BY_STRIDES = frozenset((aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default))


def must_be_its_memory(tensor: torch.Tensor, producer: Node | None) -> None:
    """`producer` is what made the tensor; None for an input or a weight."""
    is_view = producer is not None and not isinstance(producer.op, Control) and _gives_a_view(producer)
    if is_view or not tensor.is_contiguous():
        raise CannotBeCarried(
            "as_strided reads the memory behind a view, and an ONNX model has no memory behind its values",
            "call .contiguous() or .clone() before as_strided, or index the tensor: unfold, narrow, x[:, ::2]",
        )


def _gives_a_view(node: Node) -> bool:
    return any(argument.alias_info is not None for argument in node.op._schema.arguments)  # type: ignore[union-attr]
