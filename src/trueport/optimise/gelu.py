"""GELU that users wrote by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import become, has_one_reader, maker, number_in

_SINCE = 20
_MOST = 8
"""Nodes of one product that are looked at."""
_CUBIC = 0.044715
_ROUNDING = 2.5e-7
"""Two roundings of single precision: what a constant may be off by, and still be the one that is meant."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A constant times values, as often as they are factors."""

    constant: float
    values: tuple[ir.Value, ...]

    def is_of(self, constant: float, *values: ir.Value) -> bool:
        same = sorted(map(id, self.values)) == sorted(map(id, values))
        return same and math.isclose(self.constant, constant, rel_tol=_ROUNDING)


class HandwrittenGelu(NodeByNode):
    """Makes one operator of a GELU that is written by hand, from opset 20 on.

    1. `0.5 * x * (1 + erf(x / sqrt(2)))`.
    2. `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x³)))`, also with `x` before the brackets: the approximation.

    Factors may stand in any order, a quotient by a constant is a factor, and `x³` a power or a product. A constant that
    is not the number to the digits of single precision (`1.4142`) makes it another function, which stays. So does what
    is halved in the end: twice the largest numbers is infinite. In single precision only. ONNX Runtime joins the first
    form by itself; the second takes twice the time of the operator.
    """

    name: ClassVar[str] = "gelu"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {"Mul": self._mul} if self.opset >= _SINCE else {}

    def _mul(self, node: ir.Node) -> bool:
        product = _factors(node.outputs[0])
        if any(number_in(x) is not None for x in node.inputs) or len(product.values) != 2:
            return False
        if not math.isclose(product.constant, 0.5, rel_tol=_ROUNDING):
            return False
        for x, bracket in (product.values, reversed(product.values)):
            if x.dtype != ir.DataType.FLOAT:
                continue
            inner = maker(_beside_one(bracket), "Erf", "Tanh")
            given = None if inner is None else inner.inputs[0]
            if inner is None or given is None:
                continue
            if inner.op_type == "Erf" and _factors(given).is_of(math.sqrt(0.5), x):  # case 1
                return become(node, "Gelu", [x])
            if inner.op_type == "Tanh" and _is_cubic(_factors(given), x):  # case 2
                return become(node, "Gelu", [x], [ir.AttrString("approximate", "tanh")])
        return False


def _is_cubic(product: _Product, x: ir.Value) -> bool:
    """`sqrt(2 / pi) * (x + 0.044715 * x³)`, or `sqrt(2 / pi) * x * (1 + 0.044715 * x²)`."""
    brackets = [value for value in product.values if value is not x]
    if len(brackets) != 1 or not product.is_of(math.sqrt(2 / math.pi), *product.values):
        return False
    added = maker(brackets[0], "Add")
    if len(product.values) == 2:
        cube = _beside_one(brackets[0])
        return cube is not None and _factors(cube).is_of(_CUBIC, x, x)
    if len(product.values) > 2 or added is None:
        return False
    one, other = added.inputs
    cube = other if one is x else one if other is x else None
    return cube is not None and _factors(cube).is_of(_CUBIC, x, x, x)


def _beside_one(value: ir.Value | None) -> ir.Value | None:
    """What is added to 1."""
    added = maker(value, "Add")
    if added is None:
        return None
    one, other = added.inputs
    return other if number_in(one) == 1.0 else one if number_in(other) == 1.0 else None


def _factors(value: ir.Value) -> _Product:
    """What a value is a product of, through a bounded number of nodes. What others read, too, is one factor: x, which
    may be a product itself."""
    constant, values, waiting = 1.0, [], [value]
    for _ in range(_MOST):
        if not waiting:
            break
        each = waiting.pop()
        number = number_in(each)
        made = maker(each, "Mul", "Div", "Pow") if each is value or has_one_reader(each) else None
        left, right = (None, None) if made is None else made.inputs
        by = number_in(right)
        if number is not None:
            constant *= number
        elif made is None or left is None or right is None:
            values.append(each)
        elif made.op_type == "Mul":
            waiting += [left, right]
        elif made.op_type == "Div" and by:
            constant /= by
            waiting.append(left)
        elif made.op_type == "Pow" and by in (2.0, 3.0):
            waiting += [left] * int(by)
        else:
            values.append(each)
    return _Product(constant, (*values, *waiting))
