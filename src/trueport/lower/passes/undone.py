"""Nodes that undo what the node before them did are left out.

1. `Squeeze` of the axes that an `Unsqueeze` has just put there, and the other way round: what goes in comes out.
2. `Cast` to a dtype and back, where the one in between holds every value of the first: bool, int64 and bool again.
3. `Not` of `Not`.
4. `If` of `Not`: the arms change places.

Translations are written one by one, each taking and giving what its ATen operator does, so such pairs arise where two
of them meet: an item that a loop appends is given an axis, along which the loop would join it, and loses it again.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph

_D = ir.DataType
_HOLDS: dict[ir.DataType, frozenset[ir.DataType]] = {
    _D.BOOL: frozenset((_D.UINT8, _D.INT8, _D.INT16, _D.INT32, _D.INT64, _D.FLOAT16, _D.FLOAT, _D.DOUBLE)),
    _D.UINT8: frozenset((_D.INT16, _D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE)),
    _D.INT8: frozenset((_D.INT16, _D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE)),
    _D.INT16: frozenset((_D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE)),
    _D.INT32: frozenset((_D.INT64, _D.DOUBLE)),
    _D.FLOAT16: frozenset((_D.FLOAT, _D.DOUBLE)),
    _D.BFLOAT16: frozenset((_D.FLOAT, _D.DOUBLE)),
    _D.FLOAT: frozenset((_D.DOUBLE,)),
}
"""For each dtype, those that hold all of its values."""


def without_undone(model: ir.Model) -> None:
    """Read past such pairs, in place; what nobody reads any more is left out afterwards (unread.py)."""
    for graph in every_graph(model.graph):
        for node in graph:
            if node.op_type == "If":
                _asked_the_other_way(node)
            elif (find := _ORIGINALS.get(node.op_type)) is not None and not node.domain:
                original = find(node)
                if original is not None:
                    _leave_out(node, original, is_main=graph is model.graph)


def _before(node: ir.Node, *kinds: str) -> ir.Node | None:
    """The node that makes what this one is given, if it is of one of these kinds."""
    given = node.inputs[0]
    maker = None if given is None else given.producer()
    return maker if maker is not None and maker.op_type in kinds and not maker.domain else None


def _unsqueezed(node: ir.Node) -> ir.Value | None:
    before = _before(node, "Unsqueeze" if node.op_type == "Squeeze" else "Squeeze")
    if before is None or len(node.inputs) < 2 or len(before.inputs) < 2:
        return None
    one, other = node.inputs[1], before.inputs[1]
    if one is None or other is None or not (one is other or _constant(one) == _constant(other) is not None):
        return None
    return before.inputs[0]


def _cast_back(node: ir.Node) -> ir.Value | None:
    before = _before(node, "Cast")
    first = None if before is None else before.inputs[0]
    between, last = node.inputs[0], node.outputs[0]
    if first is None or between is None or first.dtype is None or first.dtype != last.dtype:
        return None
    return first if between.dtype in _HOLDS.get(first.dtype, ()) else None


def _not_twice(node: ir.Node) -> ir.Value | None:
    before = _before(node, "Not")
    return None if before is None else before.inputs[0]


_ORIGINALS: dict[str, Callable[[ir.Node], ir.Value | None]] = {
    "Squeeze": _unsqueezed,
    "Unsqueeze": _unsqueezed,
    "Cast": _cast_back,
    "Not": _not_twice,
}
"""By the second node of a pair: what was there before the first."""


def _asked_the_other_way(node: ir.Node) -> None:
    negation = _before(node, "Not")
    if negation is None:
        return
    then, orelse = node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()
    node.replace_input_with(0, negation.inputs[0])
    del node.attributes["then_branch"], node.attributes["else_branch"]
    node.attributes.add(ir.AttrGraph("then_branch", orelse))
    node.attributes.add(ir.AttrGraph("else_branch", then))


def _leave_out(node: ir.Node, original: ir.Value, is_main: bool) -> None:
    """Who reads what the node makes reads the original instead.

    An output of a graph is made by a node of that graph, is no other output, and of the model it has its name: where
    the original is none of that, the node is an `Identity`.
    """
    value, maker = node.outputs[0], original.producer()
    own = maker is not None and maker.graph is node.graph and not original.is_graph_output()
    if value.is_graph_output() and (is_main or not own):
        node.op_type = "Identity"
        node.attributes.clear()
        node.resize_inputs(1)
        node.replace_input_with(0, original)
        return
    if original.shape is None:
        original.shape = value.shape
    ir.convenience.replace_all_uses_with(value, original, replace_graph_outputs=True)


def _constant(value: ir.Value) -> list[int] | None:
    maker = value.producer()
    if maker is None or maker.op_type != "Constant" or "value" not in maker.attributes:
        return None
    axes: list[int] = maker.attributes["value"].as_tensor().numpy().tolist()
    return axes
