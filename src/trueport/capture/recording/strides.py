"""`as_strided` speaks of the memory behind a tensor; a graph has values only, laid out as they are read.

Both are the same where the tensor is all of its memory, in order: an input or a weight as it is, or what an operator
computed, also under other sizes. A view of something else is refused: its memory holds more than its value.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from trueport.capture.graph import Control, Node, Value
from trueport.capture.stops.cannot_be_carried import CannotBeCarried
from trueport.torch_internals.schemas import aliases

aten = torch.ops.aten

BY_STRIDES = frozenset((aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default))


_SAME_MEMORY = frozenset(
    (
        *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view_as.default),
        *(aten.flatten.using_ints, aten.unflatten.int, aten.unsqueeze.default, aten.alias.default, aten.detach.default),
        *(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims),
    )
)
"""Views of all of a tensor, in the same order: other sizes for the same memory."""


def must_be_its_memory(tensor: torch.Tensor, value: Value, producer_of: Callable[[Value], Node | None]) -> None:
    """`producer_of` tells what made a value; None for an input or a weight."""
    producer = producer_of(value)
    while producer is not None and producer.op in _SAME_MEMORY:
        producer = producer_of(producer.args[0])
    is_view = producer is not None and not isinstance(producer.op, Control) and aliases(producer.op)
    if is_view or not tensor.is_contiguous():
        raise CannotBeCarried(
            "as_strided reads the memory behind a view, and an ONNX model has no memory behind its values",
            "call .contiguous() or .clone() before as_strided, or index the tensor: unfold, narrow, x[:, ::2]",
        )
