"""Operators that only move elements, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar

import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import (
    become,
    dims_of,
    given,
    graph_of,
    has_one_reader,
    ints_of,
    maker,
    new_ints,
    number,
    rank_of,
)

_SHAPING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_TO_THE_END = (1 << 31) - 1
"""From here on, the end of a `Slice` is behind every axis."""


class Moves(NodeByNode):
    """Joins operators that only move elements.

    1. `Transpose` of `Transpose` is one, or none where the axes come back to their places.
    2. `Transpose` that leaves the axes in place is none.
    3. `Reshape` of what was reshaped, squeezed or unsqueezed is the last `Reshape` alone, where its sizes do not speak
       of the axes that it is given (a 0 that means "as before").
    4. `Reshape` or `Expand` to the sizes that are there, by the declared numbers and names, is none.
    5. `Squeeze` of `Unsqueeze` with the same axes, and the other way round, is none. Two `Unsqueeze` are one.
    6. `Unsqueeze` of a `Reshape` to constant sizes that nobody else reads is one `Reshape`.
    7. `Slice` from 0 to the end in steps of 1 is none. `Slice` of a `Slice` that nobody else reads, along other axes,
       with constant bounds, is one.
    8. `Concat` of a `Concat` along the same axis that nobody else reads is one.
    9. `Reshape` to sizes that are computed, each of which is declared to be a number, or that of the same axis before:
       these numbers, and 0 for "as before". What computed them is no longer needed.
    """

    name: ClassVar[str] = "moves"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {
            "Transpose": self._transpose,
            "Reshape": self._reshape,
            "Expand": self._same_sizes,
            "Squeeze": self._back,
            "Unsqueeze": self._unsqueeze,
            "Slice": self._slice,
            "Concat": self._concat,
        }

    def _transpose(self, node: ir.Node) -> ir.Value | bool | None:
        perm = _perm(node)
        if perm is None:
            return None
        if perm == list(range(len(perm))):  # case 2
            return node.inputs[0]
        before = maker(node.inputs[0], "Transpose")
        inner = None if before is None else _perm(before)
        if before is None or inner is None or len(inner) != len(perm):
            return None
        order = [inner[axis] for axis in perm]
        if order == list(range(len(order))):  # case 1: none
            return before.inputs[0]
        return become(node, "Transpose", [before.inputs[0]], [ir.AttrInt64s("perm", order)])  # case 1: one

    def _reshape(self, node: ir.Node) -> ir.Value | bool | None:
        if (same := self._same_sizes(node)) is not None:
            return same
        before = maker(node.inputs[0], *_SHAPING)
        sizes = ints_of(given(node, 1))
        says_all = number(node, "allowzero", 0) or (sizes is not None and 0 not in sizes)
        if before is not None and before.inputs[0] is not None and says_all:
            node.replace_input_with(0, before.inputs[0])  # case 3
            return True
        return sizes is None and self._declared(node)

    def _declared(self, node: ir.Node) -> bool:
        """Case 9. A 0 in the list would mean another thing where it is a number."""
        before, after = dims_of(node.inputs[0]), dims_of(node.outputs[0])
        if before is None or after is None or 0 in after:
            return False
        pairs = list(itertools.zip_longest(after, before[: len(after)]))
        if not all(isinstance(size, int) or size == old for size, old in pairs):
            return False
        numbers = [size if isinstance(size, int) else 0 for size, _ in pairs]
        shape = new_ints(graph_of(node), self.names.new(f"{node.outputs[0].name}_sizes"), numbers)
        return become(node, "Reshape", [node.inputs[0], shape])

    def _same_sizes(self, node: ir.Node) -> ir.Value | None:
        """Case 4."""
        x = node.inputs[0]
        before, after = dims_of(x), dims_of(node.outputs[0])
        if before is None or before != after:
            return None
        return x

    def _back(self, node: ir.Node) -> ir.Value | None:
        """Case 5. Axes are compared as they are written: both count in the rank of what is unsqueezed."""
        before = maker(node.inputs[0], "Unsqueeze" if node.op_type == "Squeeze" else "Squeeze")
        one, other = (None if each is None else given(each, 1) for each in (node, before))
        if before is None or one is None or other is None:
            return None
        axes = ints_of(one)
        return before.inputs[0] if one is other or (axes is not None and axes == ints_of(other)) else None

    def _unsqueeze(self, node: ir.Node) -> ir.Value | bool | None:
        if (found := self._back(node)) is not None:
            return found
        axes = ints_of(given(node, 1))
        before = maker(node.inputs[0], "Unsqueeze", "Reshape")
        if axes is None or before is None:
            return None
        if before.op_type == "Unsqueeze":
            return self._two_unsqueezes(node, before, axes)
        sizes = ints_of(given(before, 1))
        if sizes is None or 0 in sizes or not has_one_reader(before.outputs[0]):
            return None
        places = _places(axes, len(sizes) + len(axes))
        if places is None:
            return None
        rest = iter(sizes)  # case 6
        wanted = [1 if i in places else next(rest) for i in range(len(sizes) + len(axes))]
        shape = new_ints(graph_of(node), self.names.new(f"{node.outputs[0].name}_sizes"), wanted)
        return become(node, "Reshape", [before.inputs[0], shape])

    def _two_unsqueezes(self, node: ir.Node, before: ir.Node, axes: Sequence[int]) -> bool:
        """Case 5: where the new axes of both stand in the end."""
        inner, rank = ints_of(given(before, 1)), rank_of(before.inputs[0])
        if inner is None or rank is None or not has_one_reader(before.outputs[0]):
            return False
        middle = rank + len(inner)
        first, second = _places(inner, middle), _places(axes, middle + len(axes))
        if first is None or second is None:
            return False
        old = [i for i in range(middle + len(axes)) if i not in second]
        every = sorted([*second, *(old[i] for i in first)])
        shape = new_ints(graph_of(node), self.names.new(f"{node.outputs[0].name}_axes"), every)
        return become(node, "Unsqueeze", [before.inputs[0], shape])

    def _slice(self, node: ir.Node) -> ir.Value | bool | None:
        bounds = _bounds(node)
        if bounds is None:
            return None
        if all(start == 0 and end >= _TO_THE_END and step == 1 for start, end, _, step in bounds):  # case 7
            return node.inputs[0]
        before = maker(node.inputs[0], "Slice")
        inner = None if before is None else _bounds(before)
        rank = rank_of(node.inputs[0])
        if before is None or inner is None or rank is None or not has_one_reader(before.outputs[0]):
            return None
        every = [(start, end, axis % rank, step) for start, end, axis, step in (*inner, *bounds)]
        if len({axis for _, _, axis, _ in every}) < len(every):
            return None
        stem = f"{node.outputs[0].name}_bounds"  # case 7
        parts = [new_ints(graph_of(node), self.names.new(stem), numbers) for numbers in zip(*every, strict=True)]
        return become(node, "Slice", [before.inputs[0], *parts])

    def _concat(self, node: ir.Node) -> bool:
        """Case 8."""
        axis, rank = node.attributes["axis"].as_int(), rank_of(node.outputs[0])
        flat: list[ir.Value | None] = []
        for value in node.inputs:
            inner = maker(value, "Concat")
            of_inner = None if inner is None else inner.attributes["axis"].as_int()
            same = of_inner == axis or (rank is not None and of_inner is not None and of_inner % rank == axis % rank)
            if inner is not None and value is not None and same and has_one_reader(value):
                flat += inner.inputs
            else:
                flat.append(value)
        if len(flat) == len(node.inputs):
            return False
        return become(node, "Concat", flat, [ir.AttrInt64("axis", axis)])


def _perm(node: ir.Node) -> list[int] | None:
    perm = node.attributes.get("perm")
    if perm is not None:
        return list(perm.as_ints())
    rank = rank_of(node.inputs[0])
    return None if rank is None else list(reversed(range(rank)))


def _places(axes: Sequence[int], rank: int) -> set[int] | None:
    """Axes from 0 on; None where one is named twice or is none."""
    if any(not -rank <= axis < rank for axis in axes):
        return None
    found = {axis % rank for axis in axes}
    return found if len(found) == len(axes) else None


def _bounds(node: ir.Node) -> list[tuple[int, int, int, int]] | None:
    """(start, end, axis, step) of a `Slice` with constant bounds."""
    starts, ends = ints_of(given(node, 1)), ints_of(given(node, 2))
    axes = ints_of(given(node, 3)) if given(node, 3) is not None else None if starts is None else [*range(len(starts))]
    steps = ints_of(given(node, 4)) if given(node, 4) is not None else None if starts is None else [1] * len(starts)
    if starts is None or ends is None or axes is None or steps is None:
        return None
    return list(zip(starts, ends, axes, steps, strict=True))
