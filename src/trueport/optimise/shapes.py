"""Arithmetic of sizes: asked of the tensor that has them, and no more than is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import (
    array_of,
    become,
    dims_of,
    given,
    graph_of,
    has_one_reader,
    ints_of,
    maker,
    new_constant,
    number,
    rank_of,
)

_SPANS_SINCE = 15
"""The opset from which on a `Shape` may tell some axes only."""
_SAME_SIZES = frozenset(
    "Identity Cast Neg Abs Not Sqrt Reciprocal Exp Log Sigmoid Tanh Relu Erf Sin Cos Floor Ceil Softmax "
    "LogSoftmax Gelu LeakyRelu Elu Sign Round CumSum IsNaN IsInf Clip Trilu".split()
)
"""Operators whose result has the sizes of their first input."""


class SizesAsked(NodeByNode):
    """Asks for sizes where they are, and only for those that are needed.

    1. `Gather` of a `Shape`, of sizes that are all fixed: the numbers, though other sizes of the tensor may be free.
    2. `Gather` of a `Shape` at neighbouring axes in order, or `Slice` of it: a `Shape` of these axes.
    3. `Shape` of what an operator gives that changes no size: the `Shape` of what it is given, which may be known or
       computed already.
    4. `Concat` of sizes of one tensor, that are neighbours and that nobody else reads: one `Shape`.
    """

    name: ClassVar[str] = "shapes"

    @property
    def rules(self) -> Mapping[str, Rule]:
        spans = {"Slice": self._slice, "Concat": self._concat} if self.opset >= _SPANS_SINCE else {}
        return {"Gather": self._gather, "Shape": self._shape, **spans}

    def _gather(self, node: ir.Node) -> ir.Value | bool | None:
        shape, indices = maker(node.inputs[0], "Shape"), array_of(given(node, 1))
        asked = None if shape is None else _asked(shape)
        if shape is None or asked is None or indices is None:
            return None
        start, end = asked
        count = end - start
        if not all(-count <= int(index) < count for index in indices.reshape(-1)):
            return None
        axes = [start + int(index) % count for index in indices.reshape(-1)]
        dims = dims_of(shape.inputs[0]) or ()
        if axes and dims and all(isinstance(dims[axis], int) for axis in axes):  # case 1
            numbers = np.array([dims[axis] for axis in axes], np.int64).reshape(indices.shape)
            return self._fixed(node, numbers)
        if self.opset < _SPANS_SINCE or indices.ndim != 1 or not axes or axes != list(range(axes[0], axes[-1] + 1)):
            return None
        return become(node, "Shape", [shape.inputs[0]], _span(axes[0], axes[-1] + 1))  # case 2

    def _fixed(self, node: ir.Node, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> ir.Value | bool:
        output = node.outputs[0]
        if output.is_graph_output():
            return become(node, "Constant", [], [ir.AttrTensor("value", ir.Tensor(numbers))])
        name, output.name = output.name or "sizes", None
        return new_constant(graph_of(node), name, ir.Tensor(numbers, name=name))

    def _slice(self, node: ir.Node) -> bool:
        """Case 2."""
        shape = maker(node.inputs[0], "Shape")
        asked = None if shape is None else _asked(shape)
        starts, ends = ints_of(given(node, 1)), ints_of(given(node, 2))
        steps = [1] if given(node, 4) is None else ints_of(given(node, 4))
        if shape is None or asked is None or starts is None or ends is None or steps != [1]:
            return False
        if given(node, 3) is not None and ints_of(given(node, 3)) not in ([0], [-1]):
            return False
        axes = range(*asked)[starts[0] : ends[0]]
        return bool(axes) and become(node, "Shape", [shape.inputs[0]], _span(axes[0], axes[-1] + 1))

    def _shape(self, node: ir.Node) -> bool:
        """Case 3."""
        made = None if node.inputs[0] is None else node.inputs[0].producer()
        if made is None or made.domain or made.op_type not in _SAME_SIZES or made.outputs[0] is not node.inputs[0]:
            return False
        node.replace_input_with(0, made.inputs[0])
        return True

    def _concat(self, node: ir.Node) -> ir.Value | bool | None:
        """Case 4."""
        joined: list[ir.Value | None] = []
        changed = False
        for value in node.inputs:
            before, this = maker(joined[-1] if joined else None, "Shape"), maker(value, "Shape")
            one, other = (None if each is None else _asked(each) for each in (before, this))
            if (
                before is not None and this is not None and one is not None and other is not None
                and before.inputs[0] is this.inputs[0] and one[1] == other[0] and before.graph is node.graph
                and has_one_reader(before.outputs[0]) and has_one_reader(this.outputs[0])
            ):  # fmt: skip
                become(before, "Shape", [before.inputs[0]], _span(one[0], other[1]))
                before.outputs[0].shape = ir.Shape([other[1] - one[0]])
                changed = True
            else:
                joined.append(value)
        if not changed:
            return None
        return become(node, "Concat", joined, [ir.AttrInt64("axis", node.attributes["axis"].as_int())])


def _asked(shape: ir.Node) -> tuple[int, int] | None:
    """The axes that a `Shape` tells, from and up to."""
    rank, end = rank_of(shape.inputs[0]), shape.attributes.get("end")
    if rank is None:
        return None
    axes = range(rank)[number(shape, "start", 0) : None if end is None else end.as_int()]
    return (axes[0], axes[-1] + 1) if axes else None


def _span(start: int, end: int) -> list[ir.Attr]:
    return [ir.AttrInt64("start", start), ir.AttrInt64("end", end)]
