"""Weights that are made of others, when they are written and not before.

A weight shares its memory with torch. What a pass makes of it is computed for the moment of its writing: the model
never holds a second copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir
import torch

from trueport.lower.weights import WeightTensor
from trueport.optimise.edits import array_of, given, ints_of, number
from trueport.torch_internals import nothing_to_disable

Move = Callable[[Sequence[torch.Tensor]], torch.Tensor]


class ComputedWeight(WeightTensor):
    """A weight that is computed each time that somebody asks for its numbers."""

    def __init__(self, compute: Callable[[], torch.Tensor], like: torch.Tensor, name: str) -> None:
        """`like` has its dtype and its sizes, and no numbers: a tensor of torch's device "meta"."""
        super().__init__(like, name)
        self._compute = compute

    @property
    def source(self) -> torch.Tensor:
        return self._compute()


def computed(parts: Sequence[WeightTensor], function: Move, name: str) -> ComputedWeight:
    """What `function` makes of weights."""
    without_numbers = [torch.empty(tuple(part.shape.numpy()), dtype=part.raw.dtype, device="meta") for part in parts]
    with nothing_to_disable():
        like = function(without_numbers)
    return ComputedWeight(lambda: function([part.source for part in parts]), like, name)


def move_of(node: ir.Node) -> tuple[Move, int] | None:
    """How an operator moves the elements of the weights among its inputs, and how many those are: they come first."""
    find = _MOVES.get(node.op_type)
    return None if find is None or node.domain else find(node)


def _transposed(node: ir.Node) -> tuple[Move, int] | None:
    perm = node.attributes.get("perm")
    order = None if perm is None else list(perm.as_ints())
    return (lambda parts: parts[0].permute(order or list(reversed(range(parts[0].ndim))))), 1


def _reshaped(node: ir.Node) -> tuple[Move, int] | None:
    sizes = ints_of(given(node, 1))
    if sizes is None or 0 in sizes:
        return None
    return (lambda parts: parts[0].reshape(sizes)), 1


def _unsqueezed(node: ir.Node) -> tuple[Move, int] | None:
    axes = ints_of(given(node, 1))
    if axes is None or any(axis < 0 for axis in axes):
        return None
    return (lambda parts: _with_axes(parts[0], sorted(axes))), 1


def _with_axes(x: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    for axis in axes:
        x = x.unsqueeze(axis)
    return x


def _squeezed(node: ir.Node) -> tuple[Move, int] | None:
    axes = ints_of(given(node, 1))
    if axes is None or any(axis < 0 for axis in axes):
        return None
    return (lambda parts: parts[0].squeeze(tuple(axes))), 1


def _gathered(node: ir.Node) -> tuple[Move, int] | None:
    rows, axis = given(node, 1), number(node, "axis", 0)
    indices = array_of(rows)
    if indices is None or indices.dtype.kind not in "iu" or axis < 0 or (indices < 0).any():
        return None
    order = torch.as_tensor(indices.astype(np.int64))

    def gathered(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        (x,) = parts
        found = x.index_select(axis, order.reshape(-1).to(x.device))
        return found.reshape([*x.shape[:axis], *order.shape, *x.shape[axis + 1 :]])

    return gathered, 1


def _joined(node: ir.Node) -> tuple[Move, int] | None:
    axis = number(node, "axis", 0)
    return (lambda parts: torch.cat(list(parts), dim=axis)), len(node.inputs)


_MOVES: Mapping[str, Callable[[ir.Node], tuple[Move, int] | None]] = {
    "Transpose": _transposed,
    "Reshape": _reshaped,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Gather": _gathered,
    "Concat": _joined,
}
