"""What the graphs within `If` and `Loop` are made of."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Value
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk


def new_result(lowering: Walk, value: Value | Number | None) -> Tensor | None:
    return None if value is None else declared(lowering, value, "result")


def declared(lowering: Walk, value: Value | Number, stem: str) -> Tensor:
    value = lowering.twins.everywhere(value)
    sizes = value.shape if isinstance(value, Value) else ()
    return Tensor(lowering.op, lowering.op.new_name(stem), onnx_dtype(value.dtype), sizes)


def as_scalar(lowering: Walk, value: Tensor) -> Tensor:
    """Conditions and trip counts are 0-d; a tensor of one element counts too in Python."""
    if value.sizes is None or len(value.sizes) == 0:
        return value
    return lowering.op.Reshape(value, lowering.op.shape(()))


def graph_of(lowering: Walk, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> ir.Graph:
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
