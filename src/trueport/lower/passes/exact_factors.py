"""Factors of products keep their digits, and are not lost.

ONNX Runtime makes a factor before or behind a product of matrices an attribute of the product, which is of single
precision: `(a @ b) * 0.6` in float64 would be off in the eighth digit. A `Sum` of one thing, which gives that thing, is
put between the two. It is told to nobody and costs a copy.

1. `a * c @ b`, where the product has no other operand between.
2. `(a @ b) * c`, and `(a @ b) / c`.
Operators that only move elements (a transposition) may stand between, since the runtime takes those into the product,
too. A factor that single precision holds exactly may become an attribute.

And in any dtype, `y * c @ a` where y, itself `x * d`, is read by others, too: the runtime takes both factors into the
product, and y away from its other readers, so that the model does not load.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph, kept_apart, number_of

_SCALING = ("Mul", "Div")
_MOVING = frozenset(("Transpose", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def keep_factors_exact(model: ir.Model) -> None:
    """Stand between the products and their factors, in place."""
    for graph in every_graph(model.graph):
        for node in list(graph):
            if node.op_type not in _SCALING or node.domain:
                continue
            if node.outputs[0].dtype == ir.DataType.DOUBLE:
                _part(graph, node)
            _keep_shared_factor(graph, node)


def _part(graph: ir.Graph, node: ir.Node) -> None:
    divides = node.op_type == "Div"
    scaled = next((i for i in ((0,) if divides else (0, 1)) if _loses_digits(node.inputs[1 - i], divides)), None)
    if scaled is None:
        return
    if _goes_into_product(node):
        uses = list(node.outputs[0].uses())
        between = kept_apart(graph, node.outputs[0], node, behind=True)
        for use in uses:
            use.node.replace_input_with(use.idx, between)
    elif _is_product(value := node.inputs[scaled]):
        assert value is not None
        node.replace_input_with(scaled, kept_apart(graph, value, node))


def _keep_shared_factor(graph: ir.Graph, node: ir.Node) -> None:
    if not (_is_scaled(node) and _goes_into_product(node)):
        return
    for i, value in enumerate(node.inputs):
        maker = None if value is None else value.producer()
        if value is not None and maker is not None and _is_scaled(maker) and len(list(value.uses())) > 1:
            node.replace_input_with(i, kept_apart(graph, value, node))


def _is_scaled(node: ir.Node) -> bool:
    return node.op_type in _SCALING and any(number_of(value, weights=True) is not None for value in node.inputs)


def _loses_digits(value: ir.Value | None, divides: bool) -> bool:
    """Whether this is one number, and it, or what it is divided by, is none of single precision."""
    number = number_of(value, weights=True)
    if number is None:
        return False
    factor = (1 / number if number else 0.0) if divides else number
    with np.errstate(over="ignore"):  # beyond single precision is not of it either
        return float(np.float32(factor)) != factor


def _goes_into_product(node: ir.Node) -> bool:
    value = node.outputs[0]
    while len(uses := list(value.uses())) == 1 and not value.is_graph_output():
        reader = uses[0].node
        if reader.op_type == "MatMul":
            return True
        if reader.op_type not in _MOVING:
            return False
        value = reader.outputs[0]
    return False


def _is_product(value: ir.Value | None) -> bool:
    while value is not None and (maker := value.producer()) is not None:
        if maker.op_type == "MatMul":
            return True
        if maker.op_type not in _MOVING:
            return False
        value = maker.inputs[0]
    return False
