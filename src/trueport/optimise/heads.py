"""Attention that takes its heads apart itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import become, dims_of, given, has_one_reader, maker

_SWAPPED = [0, 2, 1, 3]


class HeadsInside(NodeByNode):
    """Leaves it to `Attention` to take heads apart and to put them together.

    1. Queries, keys and values of `[batch, length, heads * width]` are reshaped to `[batch, length, heads, width]` and
       transposed to `[batch, heads, length, width]`, and the result goes the same way back: eight nodes. `Attention`,
       which there is from opset 23 on, takes and gives what has three axes where it is told the numbers of heads.

    All three must come this way, and nobody else reads the result before it is put together. ONNX Runtime is 0.8 to 0.9
    of the time with it, to the same bits. What is rotated, or is joined with a cache, has its heads apart anyway.
    """

    name: ClassVar[str] = "heads"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {"Reshape": self._reshape}

    def _reshape(self, node: ir.Node) -> bool:
        turned = maker(node.inputs[0], "Transpose")
        made = None if turned is None else maker(turned.inputs[0], "Attention")
        if turned is None or made is None or _perm(turned) != _SWAPPED or len(made.outputs) > 1:
            return False
        if given(made, 4) is not None or given(made, 5) is not None or "q_num_heads" in made.attributes:
            return False
        if not has_one_reader(made.outputs[0]) or not has_one_reader(turned.outputs[0]):
            return False
        rows = [_together(value) for value in made.inputs[:3]]
        (query, heads), (key, shared), (value, of_values) = rows
        if query is None or key is None or value is None or shared != of_values:
            return False
        apart, together = dims_of(turned.outputs[0]), dims_of(node.outputs[0])
        if apart is None or together is None or not _are_joined(apart, together):
            return False
        counts = [ir.AttrInt64("q_num_heads", heads), ir.AttrInt64("kv_num_heads", shared)]
        return become(node, "Attention", [query, key, value, *made.inputs[3:]], [*made.attributes.values(), *counts])


def _together(apart: ir.Value | None) -> tuple[ir.Value | None, int]:
    """What heads were taken apart of, and how many they are."""
    turned = maker(apart, "Transpose")
    reshaped = None if turned is None or _perm(turned) != _SWAPPED else maker(turned.inputs[0], "Reshape")
    if reshaped is None:
        return None, 0
    before, after = dims_of(reshaped.inputs[0]), dims_of(reshaped.outputs[0])
    if before is None or after is None or not _are_joined(after, before) or not isinstance(after[2], int):
        return None, 0
    return reshaped.inputs[0], after[2]


def _are_joined(apart: tuple[int | str, ...], together: tuple[int | str, ...]) -> bool:
    """`[batch, length, heads, width]` and `[batch, length, heads * width]`."""
    if len(apart) != 4 or len(together) != 3 or apart[:2] != together[:2]:
        return False
    heads, width = apart[2:]
    return isinstance(heads, int) and isinstance(width, int) and heads * width == together[2]


def _perm(node: ir.Node) -> list[int] | None:
    found = node.attributes.get("perm")
    return None if found is None else list(found.as_ints())
