"""`as_strided` speaks of the memory behind a tensor; a graph has values only, laid out as they are read.

Both are the same where the tensor is all of its memory: an input or a weight as it is, or what an operator computed,
also under other sizes and with its axes in another order. A view of a part of something is refused: its memory holds
more than its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.graph.regions import Node, Value
from trueport.torch_internals.schemas import aliases
from trueport.torch_internals.symbolic import same_number, same_stride

aten = torch.ops.aten

BY_STRIDES = frozenset((aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default))


_SAME_MEMORY = frozenset(
    (
        *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view_as.default),
        *(aten.flatten.using_ints, aten.unflatten.int, aten.unsqueeze.default, aten.alias.default, aten.detach.default),
        *(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims),
        *(aten.transpose.int, aten.permute.default, aten.t.default, aten.movedim.int, aten.movedim.intlist),
        *(aten.swapaxes.default, aten.swapdims.default, aten.numpy_T.default, aten.mT.default),
    )
)
"""Views of all of a tensor: the same memory with other sizes, or with its axes in another order."""


def in_memory_order(
    op: object, tensor: torch.Tensor, value: Value, producer_of: Callable[[Value], Node | None]
) -> Sequence[int]:
    """The axes of a tensor as they follow one another in memory. `producer_of` tells what made a value; None for an
    input or a weight."""
    producer = producer_of(value)
    while producer is not None and producer.op in _SAME_MEMORY:
        producer = producer_of(producer.args[0])
    is_part = producer is not None and producer.call is not None and aliases(producer.call)
    in_order = range(tensor.dim())
    if not is_part and tensor.is_contiguous():
        return in_order
    order = None if is_part or op is aten.as_strided_scatter.default else _without_gaps(tensor)
    if order is None:
        raise CannotBeCarried(
            "as_strided reads the memory behind a view, and an ONNX model has no memory behind its values",
            "call .contiguous() or .clone() before as_strided, or index the tensor: unfold, narrow, x[:, ::2]",
        )
    return order


def _without_gaps(tensor: torch.Tensor) -> list[int] | None:
    """The order in which the axes fill the memory; None where they leave gaps, or nobody knows."""
    order: list[int] = []
    step, left = 1, list(range(tensor.dim()))
    while left:
        fits = (axis for axis in reversed(left) if same_stride(tensor.stride(axis), step))
        alone = (axis for axis in left if same_number(tensor.shape[axis], 1))
        axis = next(fits, next(alone, None))
        if axis is None:
            return None
        left.remove(axis)
        order.insert(0, axis)
        step = step * tensor.shape[axis]
    return order
