"""A root mean square norm that is written by hand, in the form that runtimes have one kernel for.

`w * (x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))` arrives as Mul, ReduceMean, Add, Sqrt, Reciprocal, Mul and Mul.

1. From opset 23 on these are one `RMSNormalization`.
2. Before, the square becomes a `Pow` and the inverse a `Div`: that is how the optimiser of ONNX Runtime knows the norm,
   which it computes at once then. By itself a `Pow` would be slower than a product, so other squares stay as they are.

In single precision only: the epsilon of the operator is of single precision, and so is that of ONNX Runtime's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph, number_of, numbers_of

_ONE_OPERATOR_SINCE = 23


@dataclass(frozen=True)
class _Norm:
    x: ir.Value
    scale: ir.Value
    square: ir.Node
    inverse: ir.Node
    epsilon: float
    axis: int
    """The first of the last axes, over which the mean is taken."""


def write_norms(model: ir.Model) -> None:
    """Rewrite such norms in place; what nobody reads any more is left out afterwards (unread.py)."""
    opset = model.graph.opset_imports[""]
    for graph in every_graph(model.graph):
        numbers: dict[float, ir.Value] = {}
        for node in list(graph):
            found = _norm(node) if node.op_type == "Mul" and not node.domain else None
            if found is None:
                continue
            if opset >= _ONE_OPERATOR_SINCE:
                _one_operator(node, found)
            else:
                _as_the_runtime_reads_it(graph, found, numbers)


def _norm(weighted: ir.Node) -> _Norm | None:
    """The norm that this product ends, by a scale for each of its elements."""
    for scaled, scale in (weighted.inputs, reversed(weighted.inputs)):
        normed = _only_for(scaled, weighted, "Mul")
        if normed is None or scale is None:
            continue
        for x, factor in (normed.inputs, reversed(normed.inputs)):
            inverse = _only_for(factor, normed, "Reciprocal")
            root = None if inverse is None else _only_for(inverse.inputs[0], inverse, "Sqrt")
            added = None if root is None else _only_for(root.inputs[0], root, "Add")
            mean = None if added is None else _only_for(added.inputs[0], added, "ReduceMean")
            square = None if mean is None else _only_for(mean.inputs[0], mean, "Mul")
            if x is None or inverse is None or added is None or mean is None or square is None:
                continue
            epsilon, axis = number_of(added.inputs[1]), _last_axes(mean, x)
            if not (square.inputs[0] is square.inputs[1] is x) or epsilon is None or axis is None:
                continue
            if x.dtype == scale.dtype == ir.DataType.FLOAT and _scales(scale, x, axis):
                return _Norm(x, scale, square, inverse, epsilon, axis)
    return None


def _only_for(value: ir.Value | None, reader: ir.Node, kind: str) -> ir.Node | None:
    """The node of this kind that makes the value, if nobody else reads it."""
    maker = None if value is None else value.producer()
    if value is None or maker is None or maker.op_type != kind or maker.domain or maker.graph is not reader.graph:
        return None
    return maker if len(list(value.uses())) == 1 and not value.is_graph_output() else None


def _last_axes(mean: ir.Node, x: ir.Value) -> int | None:
    """The first of the axes that are reduced, if they are the last and are kept."""
    if x.shape is None or mean.attributes.get_int("keepdims", 1) != 1:
        return None
    given = mean.attributes.get("axes")
    axes = list(given.as_ints()) if given is not None else numbers_of(mean.inputs[1] if len(mean.inputs) > 1 else None)
    rank = len(x.shape)
    counted = sorted(int(axis) % rank for axis in axes or ())
    return counted[0] if counted and counted == list(range(counted[0], rank)) else None


def _scales(scale: ir.Value, x: ir.Value, axis: int) -> bool:
    """Whether there is a factor for each of the elements over which the mean is taken, of known number and not none."""
    if scale.shape is None or x.shape is None or not all(isinstance(size, int) and size for size in scale.shape):
        return False
    return list(scale.shape) == list(x.shape)[axis:]


def _one_operator(node: ir.Node, norm: _Norm) -> None:
    assert norm.x.shape is not None
    node.op_type = "RMSNormalization"
    node.replace_input_with(0, norm.x)
    node.replace_input_with(1, norm.scale)
    node.attributes.add(ir.AttrInt64("axis", norm.axis - len(norm.x.shape)))
    node.attributes.add(ir.AttrFloat32("epsilon", norm.epsilon))


def _as_the_runtime_reads_it(graph: ir.Graph, norm: _Norm, numbers: dict[float, ir.Value]) -> None:
    for value in (1.0, 2.0):
        if value not in numbers:  # before the first norm of the graph, which is before all others
            numbers[value] = _number(graph, norm, value)
    norm.square.op_type = "Pow"
    norm.square.replace_input_with(1, numbers[2.0])
    root = norm.inverse.inputs[0]
    norm.inverse.op_type = "Div"
    norm.inverse.resize_inputs(2)
    norm.inverse.replace_input_with(0, numbers[1.0])
    norm.inverse.replace_input_with(1, root)


def _number(graph: ir.Graph, norm: _Norm, value: float) -> ir.Value:
    content = ir.Tensor(np.float32(value).reshape(()), dtype=ir.DataType.FLOAT)
    made = ir.Node("", "Constant", [], [ir.AttrTensor("value", content)])
    made.metadata_props.update(norm.square.metadata_props)
    out = made.outputs[0]
    out.name, out.type, out.shape = (
        f"{norm.square.outputs[0].name}_{value:g}",
        ir.TensorType(content.dtype),
        content.shape,
    )
    out.const_value, made.name = content, f"node_{out.name}"
    graph.insert_before(norm.square, made)
    return out
