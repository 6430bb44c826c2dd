"""`If` and `Loop`: a node that holds regions becomes a node that holds graphs."""

from __future__ import annotations

import onnx_ir as ir

from trueport.graph.regions import Control, Node, Number, Value
from trueport.lower.chains import DEEP, Chain, chain_of, height
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.subgraphs import as_scalar, declared, graph_of, new_result
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk


def lower_control(lowering: Walk, node: Node) -> None:
    if node.op is Control.LOOP:
        _lower_loop(lowering, node)
    elif lowering.op.scope.depth + height(node) > DEEP and Chain.is_worth_it(links := chain_of(node, lowering)):
        _bind(lowering, node, Chain(lowering, links).lower())
    else:
        _lower_if(lowering, node)


def _lower_if(lowering: Walk, node: Node) -> None:
    op = lowering.op
    predicate = lowering.tensor(node.args[0], ir.DataType.BOOL)
    outputs = [new_result(lowering, value) for value in node.outputs]
    arms = []
    for name, region in zip(("then_branch", "else_branch"), node.regions, strict=True):
        with op.inside():
            lowering.run(region)
            results = [
                lowering.tensor(out, onto.element)
                for out, onto in zip(region.outputs, outputs, strict=True)
                if onto is not None
            ]
            arms.append(ir.AttrGraph(name, graph_of(lowering, name, [], results)))
    op.append("If", [as_scalar(lowering, predicate)], arms, [out for out in outputs if out is not None])
    _bind(lowering, node, outputs)


def _lower_loop(lowering: Walk, node: Node) -> None:
    op = lowering.op
    trip_count, condition, *carried = node.args
    (body,) = node.regions
    iteration, *params = body.params
    outputs = [new_result(lowering, value) for value in node.outputs]
    first = [lowering.tensor(value, _dtype(lowering, param)) for value, param in zip(carried, params, strict=True)]
    count = None if trip_count is None else as_scalar(lowering, lowering.tensor(trip_count, ir.DataType.INT64))
    start = None if condition is None else as_scalar(lowering, lowering.tensor(condition, ir.DataType.BOOL))
    with op.inside():
        inputs = [Tensor(op, op.new_name("iteration"), ir.DataType.INT64, ())]
        lowering.bind(iteration, inputs[0])
        inputs.append(Tensor(op, op.new_name("condition"), ir.DataType.BOOL, ()))
        for param in params:
            inputs.append(declared(lowering, param, "carried"))
            lowering.bind(param, inputs[-1])
        lowering.run(body)
        go_on, *rest = body.outputs
        results = [as_scalar(lowering, lowering.tensor(True if go_on is None else go_on, ir.DataType.BOOL))]
        results += [
            lowering.tensor(out, _dtype(lowering, value)) for out, value in zip(rest, node.outputs, strict=True)
        ]
        graph = graph_of(lowering, "body", inputs, results)
    op.append(
        "Loop", [count, start, *first], [ir.AttrGraph("body", graph)], [out for out in outputs if out is not None]
    )
    _bind(lowering, node, outputs)


def _dtype(lowering: Walk, value: Value | Number | None) -> ir.DataType:
    if value is None:
        raise ValueError("a carried value of a loop must be a tensor or a number")
    return onnx_dtype(lowering.twins.everywhere(value).dtype)


def _bind(lowering: Walk, node: Node, outputs: list[Tensor | None]) -> None:
    for value, out in zip(node.outputs, outputs, strict=True):
        if value is not None and out is not None:
            lowering.bind(value, out)
