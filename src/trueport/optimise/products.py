"""Several products of one thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import onnx_ir as ir
import torch

from trueport.lower.noted import note_joined
from trueport.lower.passes.graphs import every_graph
from trueport.lower.weights import WeightTensor
from trueport.optimise.base import Pass
from trueport.optimise.edits import (
    ValueNames,
    become,
    dims_of,
    given,
    graph_of,
    has_one_reader,
    ints_of,
    is_read,
    maker,
    new_constant,
    new_ints,
    new_node,
    number,
    rank_of,
    replaced,
    tensor_of,
)
from trueport.optimise.weights import computed


@dataclass(frozen=True, slots=True)
class _Heads:
    """A product, with or without a bias, taken apart into heads."""

    nodes: tuple[ir.Node, ...]
    """`MatMul`, perhaps `Add`, `Reshape`."""
    weights: tuple[WeightTensor, ...]
    """What it is multiplied by, and perhaps what is added."""
    lead: tuple[int, ...]
    """The sizes before those of the heads, as the `Reshape` has them."""
    count: int
    width: int

    @property
    def key(self) -> object:
        """What is the same for all that can be joined."""
        return id(self.nodes[0].inputs[0]), self.lead, self.width, tuple(each.dtype for each in self.weights)

    @property
    def apart(self) -> ir.Value:
        return self.nodes[-1].outputs[0]

    def shape(self, count: int, order: Sequence[int]) -> ir.Shape | None:
        """Of as many heads, with the axes in this order."""
        dims = dims_of(self.apart)
        return None if dims is None else ir.Shape([(*dims[:-2], count, dims[-1])[axis] for axis in order])


class JoinedProducts(Pass):
    """Multiplies one thing by several weights at once.

    1. `MatMul` of one thing with several weights, each with a bias or each without, and each taken apart into heads by
       a `Reshape` that differs in their number only: queries, keys and values. One `MatMul` with the weights side by
       side, one `Add`, one `Reshape`, and a `Split` of the heads.
    2. Where each part is transposed and read by nobody else, one `Transpose` stands before the `Split`. What a part is
       turned beyond that (keys) is left behind it.

    Each number is the product of the same row and the same column as before, and ONNX Runtime gives the same bits. A
    weight that something else reads, too, stays as it is, since the file would hold it twice.
    """

    name: ClassVar[str] = "products"
    _names: ValueNames

    def run(self, model: ir.Model) -> int:
        self._names = ValueNames(model)
        return sum(self._joined(graph) for graph in every_graph(model.graph))

    def _joined(self, graph: ir.Graph) -> int:
        groups: dict[object, list[_Heads]] = {}
        for node in graph:
            found = _heads(node) if node.op_type == "Reshape" and not node.domain else None
            if found is not None:
                groups.setdefault(found.key, []).append(found)
        several = [group for group in groups.values() if len(group) > 1]
        for group in several:
            self._join(group)
        return len(several)

    def _join(self, group: Sequence[_Heads]) -> None:
        """Case 1. The new nodes stand before the first product: what they read beside its input is constant."""
        first, count = group[0], sum(each.count for each in group)
        *makers, reshapes = zip(*(each.nodes for each in group), strict=True)
        at, x = first.nodes[0], first.nodes[0].inputs[0]
        rows, order = dims_of(x), tuple(range(len(first.lead) + 2))
        flat = None if rows is None else ir.Shape([*rows[:-1], count * first.width])
        for nodes, weights in zip(makers, zip(*(each.weights for each in group), strict=True), strict=True):
            name = self._names.new(f"{weights[0].name}.joined")
            weight = new_constant(graph_of(at), name, computed(weights, _side_by_side, name))
            x = self._new(at, nodes, [x, weight], flat)
        sizes = new_ints(graph_of(at), self._named(first.apart, "sizes"), [*first.lead, count, first.width])
        x = self._new(at, reshapes, [x, sizes], first.shape(count, order))
        turns = [turn for each in group if (turn := _turn(each.apart, graph_of(at))) is not None]
        if len(turns) < len(group):
            for each, part in zip(group, self._split(group, x, order), strict=True):
                each.apart.replace_all_uses_with(part)
            return
        ((perm, _),) = Counter(map(_perm, turns)).most_common(1)  # case 2
        x = self._new(at, turns, [x], first.shape(count, perm), [ir.AttrInt64s("perm", perm)])
        for turn, part in zip(turns, self._split(group, x, perm), strict=True):
            rest = [perm.index(axis) for axis in _perm(turn)]
            if rest == sorted(rest):
                replaced(turn, part)
            else:
                become(turn, "Transpose", [part], [ir.AttrInt64s("perm", rest)])

    def _new(
        self,
        at: ir.Node,
        joined: Sequence[ir.Node],
        inputs: Sequence[ir.Value | None],
        shape: ir.Shape | None,
        attributes: Sequence[ir.Attr] = (),
    ) -> ir.Value:
        like = joined[0].outputs[0]
        out = ir.Value(name=self._named(like, "joined"), type=like.type, shape=shape)
        note_joined(new_node(at, joined[0].op_type, inputs, [out], attributes), joined)
        return out

    def _split(self, group: Sequence[_Heads], x: ir.Value, order: tuple[int, ...]) -> Sequence[ir.Value]:
        at, apart = group[0].nodes[0], [each.nodes[-1] for each in group]
        sizes = new_ints(graph_of(at), self._named(x, "heads"), [each.count for each in group])
        axis = ir.AttrInt64("axis", order.index(len(order) - 2))
        parts = [
            ir.Value(name=self._named(each.apart, "part"), type=x.type, shape=each.shape(each.count, order))
            for each in group
        ]
        note_joined(new_node(at, "Split", [x, sizes], parts, [axis]), apart)
        return parts

    def _named(self, value: ir.Value, what: str) -> str:
        return self._names.new(f"{value.name}_{what}")


def _side_by_side(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.to(parts[0].device) for part in parts], dim=-1)


def _heads(reshaped: ir.Node) -> _Heads | None:
    """What a `Reshape` takes apart, if it is a product that nobody else reads."""
    sizes, out = ints_of(given(reshaped, 1)), reshaped.inputs[0]
    if sizes is None or len(sizes) < 3 or min(sizes[-2:]) < 1 or number(reshaped, "allowzero", 0) or out is None:
        return None
    if not has_one_reader(out) or reshaped.outputs[0].is_graph_output():
        return None
    nodes, weights = [reshaped], list[WeightTensor]()
    if (added := maker(out, "Add")) is not None:
        for x, bias in (added.inputs, reversed(added.inputs)):
            if (found := _weight(bias, 1)) is not None and x is not None and has_one_reader(x):
                nodes, weights, out = [added, reshaped], [found], x
    product = maker(out, "MatMul")
    weight = None if product is None else _weight(product.inputs[1], 2)
    rank = None if product is None else rank_of(product.inputs[0])
    if product is None or weight is None or rank != len(sizes) - 1:
        return None
    if (
        any(each.shape[-1] != sizes[-2] * sizes[-1] for each in (weight, *weights))
        or product.graph is not reshaped.graph
    ):
        return None
    return _Heads((product, *nodes), (weight, *weights), tuple(sizes[:-2]), sizes[-2], sizes[-1])


def _weight(value: ir.Value | None, rank: int) -> WeightTensor | None:
    """A weight of so many axes that nobody else reads."""
    found = tensor_of(value)
    if value is None or not isinstance(found, WeightTensor) or len(found.shape) != rank or not has_one_reader(value):
        return None
    return found


def _turn(apart: ir.Value, graph: ir.Graph) -> ir.Node | None:
    """The `Transpose` in the same graph that is all that reads a value, beside what other passes left for dead."""
    readers = [reader for reader, _ in apart.uses() if is_read(reader)]
    turn = readers[0] if len(readers) == 1 else None
    if turn is None or turn.op_type != "Transpose" or turn.domain or turn.graph is not graph:
        return None
    return turn if "perm" in turn.attributes else None


def _perm(turn: ir.Node) -> tuple[int, ...]:
    return tuple(turn.attributes["perm"].as_ints())
