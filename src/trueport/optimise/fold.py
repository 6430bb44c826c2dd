"""What is the same in every run is computed now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeGuard

import numpy as np
import onnx_ir as ir

from trueport.lower.weights import WeightTensor
from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import Array, array_of, become, dims_of, graph_of, new_constant, number, tensor_of
from trueport.optimise.evaluate import TABLE, evaluated
from trueport.optimise.weights import computed, move_of

SMALL = 1 << 14
"""Bytes by which a constant may make the file larger."""
_OF_A_WEIGHT = "trueport.of_a_weight"
_MOST_WORK = 1 << 24
"""Elements that are computed in one model."""


class Fold(NodeByNode):
    """Computes what is the same in every run.

    1. An operator of `evaluate.py` all of whose inputs are constants. Those are exact to the last bit, so the model
       gives what it gave. The result is small, or no larger than the constants that go with the node.
    2. `Shape` and `Size` of a tensor whose sizes are fixed. A free size stays: the declared sizes must be numbers.
    3. A weight that is only moved (transposed for a `MatMul`, its rows in another order for an `LSTM`) is written as
       it is used, under a name of its own. It is computed when it is written (`weights.py`). A weight that something
       else reads, too, stays as it is, since the file would hold it twice.

    Nothing that depends on an input, on a free size or on chance is folded, and nothing that a kernel may round
    otherwise. The bounds are in bytes and in elements, not in time: one model gives one file everywhere.
    """

    name: ClassVar[str] = "fold"

    def __init__(self) -> None:
        self._work = 0

    @property
    def rules(self) -> Mapping[str, Rule]:
        self._work = 0
        return dict.fromkeys(TABLE, self._fold)

    def _fold(self, node: ir.Node) -> ir.Value | bool | None:
        if node.op_type in ("Shape", "Size") and (sizes := self._sizes(node)) is not None:  # case 2
            return self._constant(node, sizes)
        if not node.inputs or any(x is not None and tensor_of(x) is None for x in node.inputs):
            return None
        return self._moved_weight(node) or self._evaluated(node)

    def _sizes(self, node: ir.Node) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
        dims = dims_of(node.inputs[0])
        if dims is None:
            return None
        if node.op_type == "Size":
            return np.array(np.prod(dims), np.int64) if all(isinstance(dim, int) for dim in dims) else None  # type: ignore[arg-type]
        end = node.attributes.get("end")
        asked = dims[number(node, "start", 0) : None if end is None else end.as_int()]
        return np.array(asked, np.int64) if all(isinstance(dim, int) for dim in asked) else None

    def _evaluated(self, node: ir.Node) -> ir.Value | bool | None:
        """Case 1."""
        arrays = [array_of(x) for x in node.inputs]
        if self._work > _MOST_WORK or any(
            a is None and x is not None for a, x in zip(arrays, node.inputs, strict=True)
        ):
            return None
        weights = [x.name for x in node.inputs if _is_weight(x)]
        if weights and not self._is_only_reader(node, len(node.inputs)):
            return None
        found = evaluated(node, arrays)
        if found is None or node.outputs[0].dtype not in (None, ir.DataType.from_numpy(found.dtype)):
            return None
        self._work += found.size + sum(array.size for array in arrays if array is not None)
        if found.nbytes > max(SMALL, self._freed(node)):
            return None
        name = _called(weights[0], node) if weights else None
        return self._constant(node, np.ascontiguousarray(found).reshape(found.shape), name)

    def _freed(self, node: ir.Node) -> int:
        """Bytes of the constants that nobody else reads."""
        tensors = [tensor_of(x) for x in dict.fromkeys(node.inputs) if x is not None and len(x.uses()) == 1]
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def _is_only_reader(self, node: ir.Node, count: int) -> bool:
        """Whether nobody else reads the weights among the first inputs of a node."""
        weights = [x for x in node.inputs[:count] if _is_weight(x)]
        return all(x is None or (len(x.uses()) == 1 and not x.is_graph_output()) for x in weights)

    def _constant(self, node: ir.Node, content: Array, name: str | None = None) -> ir.Value | bool:
        output = node.outputs[0]
        dtype = ir.DataType.from_numpy(content.dtype)
        if output.is_graph_output():
            if output.type is None:
                output.type = ir.TensorType(dtype)
            return become(node, "Constant", [], [ir.AttrTensor("value", ir.Tensor(content, dtype=dtype))])
        if name is None:
            name, output.name = output.name or "folded", None
            return new_constant(graph_of(node), name, ir.Tensor(content, dtype=dtype, name=name))
        made = new_constant(graph_of(node), name := self.names.new(name), ir.Tensor(content, dtype=dtype, name=name))
        made.meta[_OF_A_WEIGHT] = True
        return made

    def _moved_weight(self, node: ir.Node) -> ir.Value | None:
        """Case 3."""
        move = move_of(node)
        if move is None or node.outputs[0].is_graph_output():
            return None
        function, count = move
        parts = [tensor_of(x) for x in node.inputs[:count]]
        weights = [part for part in parts if isinstance(part, WeightTensor)]
        if len(weights) != len(parts) or not self._is_only_reader(node, count):
            return None
        try:
            name = self.names.new(_called(weights[0].name, node))
            return new_constant(graph_of(node), name, computed(weights, function, name))
        except (RuntimeError, IndexError):  # torch refuses what no runtime would run either
            return None


def _is_weight(value: ir.Value | None) -> TypeGuard[ir.Value]:
    """Whether it is a weight of the model, or was made of one."""
    return value is not None and (isinstance(tensor_of(value), WeightTensor) or _OF_A_WEIGHT in value.meta)


def _called(weight: str | None, node: ir.Node) -> str:
    """After the weight that it was, so that people find it."""
    return f"{weight}.{_DONE.get(node.op_type, node.op_type.lower())}"


_DONE = {"Transpose": "transposed", "Gather": "reordered", "Concat": "joined"}
