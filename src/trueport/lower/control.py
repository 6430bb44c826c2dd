"""`If` and `Loop`: a node that holds regions becomes a node that holds graphs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from trueport.capture.graph import Control, Node, Number, Value
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk


def lower_control(lowering: Walk, node: Node) -> None:
    if node.op is Control.IF:
        _lower_if(lowering, node)
    else:
        _lower_loop(lowering, node)


def _lower_if(lowering: Walk, node: Node) -> None:
    op = lowering.op
    predicate = lowering.tensor(node.args[0], ir.DataType.BOOL)
    outputs = [_new(lowering, value) for value in node.outputs]
    arms = []
    for name, region in zip(("then_branch", "else_branch"), node.regions, strict=True):
        with op.inside():
            lowering.run(region)
            results = [
                lowering.tensor(out, onto.element)
                for out, onto in zip(region.outputs, outputs, strict=True)
                if onto is not None
            ]
            arms.append(ir.AttrGraph(name, _graph(lowering, name, [], results)))
    op.append("If", [_as_scalar(lowering, predicate)], arms, [out for out in outputs if out is not None])
    _bind(lowering, node, outputs)


def _lower_loop(lowering: Walk, node: Node) -> None:
    op = lowering.op
    trip_count, condition, *carried = node.args
    (body,) = node.regions
    iteration, *params = body.params
    outputs = [_new(lowering, value) for value in node.outputs]
    first = [lowering.tensor(value, _dtype(lowering, param)) for value, param in zip(carried, params, strict=True)]
    count = None if trip_count is None else _as_scalar(lowering, lowering.tensor(trip_count, ir.DataType.INT64))
    start = None if condition is None else _as_scalar(lowering, lowering.tensor(condition, ir.DataType.BOOL))
    with op.inside():
        inputs = [Tensor(op, op.new_name("iteration"), ir.DataType.INT64, ())]
        lowering.bind(iteration, inputs[0])
        inputs.append(Tensor(op, op.new_name("condition"), ir.DataType.BOOL, ()))
        for param in params:
            inputs.append(_declared(lowering, param, "carried"))
            lowering.bind(param, inputs[-1])
        lowering.run(body)
        go_on, *rest = body.outputs
        results = [_as_scalar(lowering, lowering.tensor(True if go_on is None else go_on, ir.DataType.BOOL))]
        results += [
            lowering.tensor(out, _dtype(lowering, value)) for out, value in zip(rest, node.outputs, strict=True)
        ]
        graph = _graph(lowering, "body", inputs, results)
    op.append(
        "Loop", [count, start, *first], [ir.AttrGraph("body", graph)], [out for out in outputs if out is not None]
    )
    _bind(lowering, node, outputs)


def _new(lowering: Walk, value: Value | Number | None) -> Tensor | None:
    return None if value is None else _declared(lowering, value, "result")


def _declared(lowering: Walk, value: Value | Number, stem: str) -> Tensor:
    value = lowering.twins.everywhere(value)
    sizes = value.shape if isinstance(value, Value) else ()
    return Tensor(lowering.op, lowering.op.new_name(stem), onnx_dtype(value.dtype), sizes)


def _dtype(lowering: Walk, value: Value | Number | None) -> ir.DataType:
    if value is None:
        raise ValueError("a carried value of a loop must be a tensor or a number")
    return onnx_dtype(lowering.twins.everywhere(value).dtype)


def _bind(lowering: Walk, node: Node, outputs: list[Tensor | None]) -> None:
    for value, out in zip(node.outputs, outputs, strict=True):
        if value is not None and out is not None:
            lowering.bind(value, out)


def _as_scalar(lowering: Walk, value: Tensor) -> Tensor:
    """Conditions and trip counts are 0-d; a tensor of one element counts too in Python."""
    if value.sizes is None or len(value.sizes) == 0:
        return value
    return lowering.op.Reshape(value, lowering.op.shape(()))


def _graph(lowering: Walk, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> ir.Graph:
    own = made_here(lowering.op, outputs)
    return ir.Graph(inputs, own, nodes=lowering.op.scope.nodes, name=lowering.op.new_name(name))


def made_here(op: Builder, outputs: Sequence[Tensor]) -> list[Tensor]:
    """A graph's outputs must be made by its own nodes, each once: anything else goes through Identity."""
    own: list[Tensor] = []
    for out in outputs:
        if out.scope is not op.scope or any(out is other for other in own):
            sizes, out = out.sizes, op.Identity(out)
            out.settle(sizes)
        own.append(out)
    return own
