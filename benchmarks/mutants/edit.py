"""Small surgery on an ONNX model: find a node, put others before or behind it.

Written on plain protobuf: what makes a file wrong must not share code with what wrote it or with what judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

Value = str
Operand = Any
"""The name of a value, or what `numpy.asarray` makes a constant of (Python integers are int64, floats float32)."""
Rewrite = Callable[["Builder", Value], Value]


class DoesNotApply(Exception):
    """The graph has no place for this mutation."""


@dataclass(frozen=True)
class At:
    """A node and the graph that holds it."""

    graph: GraphProto
    node: NodeProto

    @property
    def index(self) -> int:
        """Found by its outputs, which no other node of the graph has."""
        return next(index for index, node in enumerate(self.graph.node) if node.output[0] == self.node.output[0])


class Builder:
    """`op.Add(x, 1.0)` writes a node at its place in a graph, and gives the name of its first output."""

    def __init__(self, edit: Edit, graph: GraphProto, index: int) -> None:
        self._edit, self._graph, self._index = edit, graph, index

    def __getattr__(self, op_type: str) -> Callable[..., Value]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def write(*operands: Operand, outputs: int = 1, **attributes: Any) -> Value:
            names = [operand if isinstance(operand, str) else self.constant(operand) for operand in operands]
            made = [self._edit.fresh(op_type) for _ in range(outputs)]
            self._put(helper.make_node(op_type, names, made, **attributes))
            return made[0] if outputs == 1 else made  # type: ignore[return-value]

        return write

    def named(self, output: Value, op_type: str, *operands: Value) -> None:
        self._put(helper.make_node(op_type, list(operands), [output]))

    def constant(self, value: Operand, dtype: Any = None) -> Value:
        array = np.asarray(value, dtype)
        if dtype is None and array.dtype == np.float64 and not isinstance(value, np.float64 | np.ndarray):
            array = array.astype(np.float32)
        name = self._edit.fresh("const")
        self._put(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        return name

    def like(self, number: float, value: Value) -> Value:
        """A constant in the dtype of `value`."""
        return self.CastLike(self.constant(np.asarray(number)), value)

    def size(self, value: Value, axis: int) -> Value:
        """One size of a value, 0-d int64."""
        return self.Gather(self.Shape(value), np.int64(axis), axis=0)

    def _put(self, node: NodeProto) -> None:
        self._graph.node.insert(self._index, node)
        self._index += 1


class Edit:
    """One model under the knife; it is changed in place."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self._count = 0

    def fresh(self, hint: str) -> Value:
        self._count += 1
        return f"{hint.lower()}_m{self._count}"

    def graphs(self) -> Iterator[GraphProto]:
        yield from _graphs(self.model.graph)

    def nodes(self, *op_types: str) -> list[At]:
        """In the order of the file, subgraphs included."""
        return [At(g, node) for g in self.graphs() for node in g.node if not op_types or node.op_type in op_types]

    def node(self, *op_types: str, nth: int = 0) -> At:
        found = self.nodes(*op_types)
        if not -len(found) <= nth < len(found):
            raise DoesNotApply(f"no {'/'.join(op_types)} number {nth}, there are {len(found)}")
        return found[nth]

    def producer(self, value: Value) -> At:
        for at in self.nodes():
            if value in at.node.output:
                return at
        raise DoesNotApply(f"no node makes {value}")

    def behind(self, at: At, rewrite: Rewrite, output: int = 0) -> None:
        """What the node gives is rewritten before anybody reads it."""
        name, raw = at.node.output[output], self.fresh("raw")
        index = at.index
        at.graph.node[index].output[output] = raw
        op = Builder(self, at.graph, index + 1)
        made = rewrite(op, raw)
        op._put(helper.make_node("Identity", [made], [name]))

    def before(self, at: At, rewrite: Rewrite, operand: int = 0) -> None:
        """What the node reads is rewritten for it alone."""
        index = at.index
        op = Builder(self, at.graph, index)
        made = rewrite(op, at.node.input[operand])
        at.graph.node[op._index].input[operand] = made

    def instead(self, at: At, rewrite: Callable[[Builder, Sequence[Value]], Value]) -> None:
        """Another computation from the same operands, for the node's first output."""
        index = at.index
        inputs, output = list(at.node.input), at.node.output[0]
        del at.graph.node[index]
        op = Builder(self, at.graph, index)
        made = rewrite(op, inputs)
        op._put(helper.make_node("Identity", [made], [output]))

    def input(self, which: int | str, rewrite: Rewrite) -> None:
        """What everybody reads of an input of the model is rewritten."""
        graph = self.model.graph
        name = which if isinstance(which, str) else graph.input[which].name
        op = Builder(self, graph, 0)
        made = rewrite(op, name)
        for place, at in enumerate(self.nodes()):
            if at.graph is graph and place < op._index:
                continue
            for operand, read in enumerate(at.node.input):
                if read == name:
                    at.node.input[operand] = made
        for inner in list(self.graphs())[1:]:
            for out in inner.output:
                if out.name == name:
                    out.name = made

    def output(self, which: int, rewrite: Rewrite) -> None:
        """What the model gives is rewritten."""
        name = self.model.graph.output[which].name
        self.behind(self.producer(name), rewrite, list(self.producer(name).node.output).index(name))

    def constants(self) -> Iterator[tuple[onnx.TensorProto, np.ndarray[Any, Any]]]:
        for graph in self.graphs():
            for tensor in graph.initializer:
                yield tensor, numpy_helper.to_array(tensor)
            for node in graph.node:
                if node.op_type in ("Constant", "ConstantOfShape") and [a.name for a in node.attribute] == ["value"]:
                    tensor = node.attribute[0].t
                    yield tensor, numpy_helper.to_array(tensor)

    def change(self, matches: Callable[[np.ndarray[Any, Any]], bool], new: Callable[[Any], Any], nth: int = 0) -> None:
        """Another value in the nth constant that matches."""
        found = [(tensor, array) for tensor, array in self.constants() if matches(array)]
        if len(found) <= nth:
            raise DoesNotApply(f"no constant number {nth} of {len(found)}")
        tensor, array = found[nth]
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(new(array.copy()), array.dtype), tensor.name))

    def change_number(self, old: float, new: float, nth: int | None = None) -> None:
        """Every constant of one element that holds `old`, or the nth of them."""
        found = [
            (tensor, array)
            for tensor, array in self.constants()
            if array.size == 1 and array.dtype != bool and np.isclose(float(array.reshape(())), old, rtol=1e-6, atol=0)
        ]
        chosen = found if nth is None else found[nth : nth + 1]
        if not chosen:
            raise DoesNotApply(f"no constant {old}")
        for tensor, array in chosen:
            tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, new), tensor.name))

    @staticmethod
    def set(at: At, **attributes: Any) -> None:
        """Other attributes of a node; None removes one."""
        kept = [a for a in at.node.attribute if a.name not in attributes]
        made = [helper.make_attribute(name, value) for name, value in attributes.items() if value is not None]
        del at.node.attribute[:]
        at.node.attribute.extend([*kept, *made])


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
