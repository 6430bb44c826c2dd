"""Nodes that change nothing, or undo what the node before them did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import array_of, become, given, maker, rank_of

_D = ir.DataType
_INTEGERS = frozenset((_D.UINT8, _D.INT8, _D.UINT16, _D.INT16, _D.UINT32, _D.INT32, _D.INT64, _D.UINT64))
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


class Identities(NodeByNode):
    """Leaves out nodes that change nothing.

    1. `Identity`; `Concat` of one thing. An output of a graph that the graph does not make itself needs its `Identity`.
       A `Sum` of one thing stays: it stands where the runtime must not see through (lower/passes).
    2. `Cast` to the dtype that is there.
    3. `Cast` of a `Cast`, where the dtype between holds every number of the first: one `Cast`, or none. From a float
       to an integer both stay, since what is out of range is nobody's promise.
    4. `x + 0` and `x - 0` of integers, `x * 1` and `x / 1`; of floats also `x + -0.0` and `x - 0.0`. Not `x + 0.0`,
       which makes 0.0 of -0.0. The constant is one number and adds no axis.
    5. `Not` of `Not`; `x and True`; `x or False`.
    6. `If` of `Not`: the arms change places.
    """

    name: ClassVar[str] = "identities"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {
            "Identity": self._given,
            "Concat": self._alone,
            "Cast": self._cast,
            "Add": self._neutral,
            "Sub": self._neutral,
            "Mul": self._neutral,
            "Div": self._neutral,
            "And": self._neutral,
            "Or": self._neutral,
            "Not": self._not,
            "If": self._if,
        }

    def _given(self, node: ir.Node) -> ir.Value | None:
        """Case 1."""
        return node.inputs[0]

    def _alone(self, node: ir.Node) -> ir.Value | None:
        """Case 1."""
        return node.inputs[0] if len(node.inputs) == 1 else None

    def _cast(self, node: ir.Node) -> ir.Value | bool | None:
        x, wanted = node.inputs[0], _D(node.attributes["to"].as_int())
        if x is None or x.dtype is None:
            return None
        if x.dtype == wanted:  # case 2
            return x
        before = maker(x, "Cast")
        first = None if before is None else before.inputs[0]
        if before is None or first is None or first.dtype is None or x.dtype not in _HOLDS.get(first.dtype, ()):
            return None
        if first.dtype == wanted:  # case 3: none
            return first
        if first.dtype.is_floating_point() and not wanted.is_floating_point():
            return None
        if wanted not in _HOLDS and wanted not in _INTEGERS and wanted != _D.DOUBLE:
            return None  # 8-bit floats, text
        node.replace_input_with(0, first)  # case 3: one
        return True

    def _neutral(self, node: ir.Node) -> ir.Value | None:
        """Cases 4 and 5."""
        for index in (1,) if node.op_type in ("Sub", "Div") else (1, 0):
            x, constant = given(node, 1 - index), array_of(given(node, index))
            if x is None or constant is None or constant.size != 1:
                continue
            rank = rank_of(x)
            if constant.ndim and (rank is None or rank < constant.ndim):
                continue
            if _is_neutral(node.op_type, constant.reshape(())):
                return x
        return None

    def _not(self, node: ir.Node) -> ir.Value | None:
        """Case 5."""
        before = maker(node.inputs[0], "Not")
        return None if before is None else before.inputs[0]

    def _if(self, node: ir.Node) -> bool:
        """Case 6."""
        negation = maker(node.inputs[0], "Not")
        if negation is None:
            return False
        then, orelse = node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()
        return become(
            node, "If", [negation.inputs[0]], [ir.AttrGraph("then_branch", orelse), ir.AttrGraph("else_branch", then)]
        )


def _is_neutral(op_type: str, constant: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    content = constant.item()
    match op_type, constant.dtype.kind:
        case (("Add" | "Sub"), ("i" | "u")):
            return bool(content == 0)
        case (("Mul" | "Div"), ("i" | "u")):
            return bool(content == 1)
        case (("Mul" | "Div"), "f"):
            return bool(content == 1.0)
        case "Add", "f":
            return bool(content == 0 and np.signbit(content))
        case "Sub", "f":
            return bool(content == 0 and not np.signbit(content))
        case "And", "b":
            return bool(content)
        case "Or", "b":
            return not content
    return False
