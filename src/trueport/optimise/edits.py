"""What passes do to a graph, and what they ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from trueport.lower.passes.graphs import every_graph
from trueport.lower.weights import WeightTensor

Array = np.ndarray[Any, Any]

_READ = 1 << 16
"""Elements of a constant that a rule looks at; what is larger is a weight and no parameter of an operator."""


class ValueNames:
    """The names of a model's values, so that a new one is new in every graph of it."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._taken: set[str] | None = None

    def new(self, stem: str) -> str:
        if self._taken is None:  # few passes need one
            self._taken = set(_names_in(self._model))
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


def _names_in(model: ir.Model) -> set[str]:
    found: set[str] = set()
    for graph in every_graph(model.graph):
        found.update(value.name for value in graph.inputs if value.name)
        found.update(graph.initializers)
        found.update(output.name for node in graph for output in node.outputs if output.name)
    return found


# Asking


def maker(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that makes a value, if it is one of these operators of the standard domain."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in kinds and not node.domain else None


def tensor_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """What a constant holds; None for what may change, as an initializer does that is also an input."""
    if value is None:
        return None
    if value.is_initializer():
        return None if value.is_graph_input() else value.const_value
    node = maker(value, "Constant")
    given = None if node is None else node.attributes.get("value")
    return None if given is None or given.is_ref() else given.as_tensor()


def array_of(value: ir.Value | None) -> Array | None:
    """A small constant as numpy has it."""
    tensor = tensor_of(value)
    return None if tensor is None or tensor.size > _READ else tensor.numpy()


def ints_of(value: ir.Value | None) -> list[int] | None:
    """A constant list of integers: axes, sizes, pads."""
    array = array_of(value)
    if array is None or array.dtype.kind not in "iu" or array.ndim > 1:
        return None
    return [int(number) for number in array.reshape(-1)]


def number_in(value: ir.Value | None) -> float | None:
    """The number that a constant is; None for a weight of the model, which its user may want to find in the file."""
    array = None if isinstance(tensor_of(value), WeightTensor) else array_of(value)
    return float(array.item()) if array is not None and array.size == 1 and array.dtype.kind in "iuf" else None


def given(node: ir.Node, index: int) -> ir.Value | None:
    """An input; None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def rank_of(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def dims_of(value: ir.Value | None) -> tuple[int | str, ...] | None:
    """The declared sizes, where each is a number or has a name: one name is one number in every run."""
    if value is None or value.shape is None:
        return None
    dims = tuple(dim if isinstance(dim, int) else dim.value for dim in value.shape)
    return None if any(dim is None for dim in dims) else dims  # type: ignore[return-value]


def number(node: ir.Node, name: str, default: int) -> int:
    """An integer attribute."""
    found = node.attributes.get(name)
    return default if found is None else found.as_int()


def has_one_reader(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def is_read(node: ir.Node) -> bool:
    """Whether anybody reads what a node gives. A pass may leave one for dead, which `dead_code` takes out later."""
    return any(output.uses() or output.is_graph_output() for output in node.outputs)


# Editing


def replaced(node: ir.Node, value: ir.Value) -> bool:
    """Let who reads the first output of a node read `value`, which is the same. Whether anything changed.

    An output of a graph is made by a node of that graph and is no other output of it. Where `value` is none of that,
    the node becomes an `Identity`.
    """
    output = node.outputs[0]
    if output.is_graph_output():
        made = value.producer()
        if made is None or made.graph is not node.graph or value.is_graph_output():
            return _become_identity(node, value)
        value.name, output.name = output.name, value.name
        value.shape, value.type = output.shape, output.type
    else:
        _tell_shape(output, value)
    output.replace_all_uses_with(value, replace_graph_outputs=True)
    remove(node)
    return True


def _become_identity(node: ir.Node, value: ir.Value) -> bool:
    if node.op_type == "Identity" and node.inputs[0] is value:
        return False
    node.op_type = "Identity"
    node.attributes.clear()
    node.resize_inputs(1)
    node.replace_input_with(0, value)
    return True


def _tell_shape(known: ir.Value, value: ir.Value) -> None:
    """What the removed value was declared to be may be more than is known of the one that stays."""
    if value.type is None:
        value.type = known.type
    if value.shape is None:
        value.shape = known.shape


def remove(node: ir.Node) -> None:
    """Take a node out whose outputs nobody reads.

    `Graph.remove` goes through all outputs of the graph for each node, and a model with a cache has some in each layer:
    the time grew with the square of the layers.
    """
    graph = node.graph
    assert graph is not None
    nodes = getattr(graph, "_nodes", None)
    if nodes is None:  # a function, which has few outputs
        graph.remove(node, safe=True)
        return
    if is_read(node):
        raise ValueError(f"somebody reads what {node.name} gives")
    for place in range(len(node.inputs)):
        node.replace_input_with(place, None)
    node.graph = None
    nodes.remove(node)


def new_constant(graph: ir.Graph, name: str, tensor: ir.TensorProtocol) -> ir.Value:
    """An initializer of this graph. The name must be free."""
    sizes = ir.Shape(tensor.shape.numpy())
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=sizes, const_value=tensor)
    graph.register_initializer(value)
    return value


def new_ints(graph: ir.Graph, name: str, numbers: Sequence[int]) -> ir.Value:
    return new_constant(graph, name, ir.Tensor(np.array(numbers, dtype=np.int64), name=name))


def new_node(
    before: ir.Node,
    op_type: str,
    inputs: Sequence[ir.Value | None],
    outputs: Sequence[ir.Value],
    attributes: Sequence[ir.Attr] = (),
) -> ir.Node:
    """A node that stands before another, with its line and its module."""
    made = ir.Node("", op_type, inputs, attributes, outputs=outputs, name=f"node_{outputs[0].name}")
    made.metadata_props.update(before.metadata_props)
    graph_of(before).insert_before(before, made)
    return made


def become(node: ir.Node, op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr] = ()) -> bool:
    """Make another operator of a node, which keeps its outputs, its name and its metadata."""
    node.op_type = op_type
    node.attributes.clear()
    for attribute in attributes:
        node.attributes.add(attribute)
    node.resize_inputs(len(inputs))
    for index, value in enumerate(inputs):
        node.replace_input_with(index, value)
    return True


def graph_of(node: ir.Node) -> ir.Graph:
    """The graph that a node stands in; functions of the model are not gone into."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    return graph
