"""Constants are initializers, each of them once."""

from __future__ import annotations

from collections import ChainMap
from typing import ClassVar

import numpy as np
import onnx_ir as ir
import torch

from trueport.lower.passes.graphs import every_graph
from trueport.lower.weights import WeightTensor
from trueport.optimise.base import Pass
from trueport.optimise.edits import new_constant, tensor_of

NAMED_BELOW = 1 << 16
"""Bytes below which a weight of the model keeps its own name, though another one is equal."""
_SAMPLE = 64


class LiftedConstants(Pass):
    """Makes initializers of constants, and shares equal ones.

    1. A `Constant` node becomes an initializer of its graph, of the same name. An output of a graph stays a node, since
       not every runtime lets an inner graph return an initializer.
    2. Two constants that are equal (dtype, sizes, bytes) are one. A graph reads that of a graph around it.
    3. Two weights of 64 KiB and more that are equal are one, under the first one's name. Smaller ones are left, since
       their names are worth more than their bytes: all norms of an untrained model are equal.

    A weight is compared with another only if a sample of both is equal.
    """

    name: ClassVar[str] = "constants"

    def run(self, model: ir.Model) -> int:
        lifted = sum(_lifted(graph) for graph in every_graph(model.graph))
        return lifted + _shared(model.graph, ChainMap())


def _lifted(graph: ir.Graph) -> int:
    """Case 1. The nodes leave the graph together, since it looks at all of its outputs each time."""
    lifted: list[ir.Node] = []
    for node in graph:
        if node.op_type != "Constant" or node.domain or node.outputs[0].is_graph_output():
            continue
        output, tensor = node.outputs[0], tensor_of(node.outputs[0])
        if tensor is None:
            continue
        name, output.name = output.name or "constant", None
        constant = new_constant(graph, name, tensor)
        constant.metadata_props.update(output.metadata_props)
        output.replace_all_uses_with(constant)
        lifted.append(node)
    graph.remove(lifted)
    return len(lifted)


def _shared(graph: ir.Graph, known: ChainMap[object, list[ir.Value]]) -> int:
    """Cases 2 and 3. `known` has what this graph and those around it hold."""
    count = 0
    for value in list(graph.initializers.values()):
        key = None if value.is_graph_input() or value.is_graph_output() else _key(value.const_value)
        if key is None:
            continue
        same = next((other for other in known.get(key, ()) if _equal(value.const_value, other.const_value)), None)
        if same is None:
            known[key] = [*known.get(key, ()), value]
            continue
        value.replace_all_uses_with(same)
        assert value.name is not None
        del graph.initializers[value.name]
        count += 1
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                count += _shared(attribute.as_graph(), known.new_child())
    return count


def _key(tensor: ir.TensorProtocol | None) -> object:
    """Equal for equal tensors; None for what is not shared."""
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return None
    kind = (tensor.dtype, tuple(tensor.shape.numpy()))
    if not isinstance(tensor, WeightTensor):
        return None if tensor.nbytes > NAMED_BELOW else (*kind, tensor.tobytes())
    if tensor.nbytes < NAMED_BELOW or type(tensor) is not WeightTensor:
        return None
    flat = tensor.source.reshape(-1) if tensor.source.is_contiguous() else None
    return None if flat is None else (*kind, _bytes(flat[:_SAMPLE]), _bytes(flat[-_SAMPLE:]))


def _bytes(numbers: torch.Tensor) -> bytes:
    return np.asarray(numbers.detach().cpu().contiguous().view(torch.uint8).numpy()).tobytes()


def _equal(one: ir.TensorProtocol | None, other: ir.TensorProtocol | None) -> bool:
    if isinstance(one, WeightTensor) and isinstance(other, WeightTensor):
        # By their bits: a NaN equals itself, and 0.0 is not -0.0.
        return torch.equal(*(each.source.detach().reshape(-1).view(torch.uint8) for each in (one, other)))
    return not isinstance(one, WeightTensor) and not isinstance(other, WeightTensor)
