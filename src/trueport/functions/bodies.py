"""The functions that kinds of blocks become, and the nodes that call them.

A function is given what its block reads, and gives what others read of it. Nothing else of the model is visible in it.

1. A small constant that is the same in all blocks of a kind stands in the function; one that differs is an input.
2. A weight is an input always: functions hold none.
3. What any block of a kind hands out, the function does: some calls have outputs that nobody reads.
4. The name of a size is one size in the whole file, and calls have different ones: so sizes have no names inside. Only
   the ends of inner graphs have a dtype and sizes, and those are part of what blocks of a kind have in common.
5. Notes on nodes say what is so in every call; a line that differs between calls is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from trueport.functions.blocks import Block, Item, Layout, graphs_of, is_constant
from trueport.functions.kinds import BlockKind, KnownBlock, content_of, own_nodes
from trueport.graph.regions import Value
from trueport.lower.noted import CALL, SOURCE, STACK, Scopes, note_place, notes_of, within
from trueport.lower.weights import WeightTensor
from trueport.source import Place, SourceRoots

DOMAIN = "trueport.functions"
_SMALL = 1 << 10
"""Bytes of a constant that a function may hold."""
_ASKED = 3
"""Blocks of a kind that are asked for the names of its inputs."""


@dataclass(frozen=True)
class Body:
    """A function, and which of a block's values it takes and gives."""

    function: ir.Function
    given: tuple[int, ...]
    made: tuple[int, ...]


@dataclass
class Bodies:
    """The functions of one model."""

    layout: Layout
    known: Mapping[Block, KnownBlock]
    imports: Mapping[str, int]
    """The versions of the domains of the model's operators."""
    names: Mapping[Value, str]
    """What captured values are called in the model."""
    scopes: Scopes
    roots: SourceRoots | None
    bodies: dict[BlockKind, Body] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def write(self, kind: BlockKind) -> None:
        """The function of a kind, after those of the kinds inside of it."""
        first = kind.blocks[0]
        writing = _Writing(self, first, self._lines_that_differ(kind))
        needed = writing.needed()
        baked = {number for number in range(len(first.given)) if _is_same_constant(kind, number)}  # case 1
        numbers = [number for number, value in enumerate(first.given) if value in needed and number not in baked]
        numbers.sort(key=lambda number: self._rank(kind, number))
        for number in numbers:
            writing.give(first.given[number], self._name_given(kind, number))
        constants = [writing.constant(first.given[number]) for number in sorted(baked) if first.given[number] in needed]
        nodes = [*constants, *writing.items(first.block.items)]
        made = self._handed_out(kind)
        outputs = [writing.values[first.made[number]] for number in made]
        for number, output in zip(made, outputs, strict=True):
            writing.rename(output, self._name_made(kind, number))
        used = set(_domains(nodes))
        graph = ir.Graph(
            [writing.values[first.given[number]] for number in numbers],
            outputs,
            nodes=nodes,
            opset_imports={domain: version for domain, version in self.imports.items() if domain in used or not domain},
            name=(name := self._new_name(kind)),
        )
        function = ir.Function(DOMAIN, name, graph=graph, attributes=[])
        if self.roots is not None:
            function.metadata_props["trueport.class"] = f"{kind.module.__module__}.{kind.module.__qualname__}"
        self.bodies[kind] = Body(function, tuple(numbers), tuple(made))

    def call(self, block: Block, read: Callable[[ir.Value], ir.Value], make: Callable[[ir.Value], ir.Value]) -> ir.Node:
        """A node that calls the function of a block."""
        known = self.known[block]
        body = self.bodies[known.kind]
        node = ir.Node(
            DOMAIN,
            body.function.name,
            [read(known.given[number]) for number in body.given],
            outputs=[make(known.made[number]) for number in body.made],
            metadata_props=self._notes(block),
        )
        self.scopes.note(node, classes=self.roots is not None)
        node.name = self.scopes.name(node)
        return node

    def _notes(self, block: Block) -> dict[str, str]:
        call = block.call
        notes = notes_of(call.kind.__name__, Place(call.place.calls, call.path))
        note_place(notes, self.roots)
        return notes

    def stack_of(self, block: Block) -> str:
        return self._notes(block).get(STACK, "")

    def _new_name(self, kind: BlockKind) -> str:
        """`Block`, then `Block_2`."""
        stem = re.sub(r"\W", "_", kind.module.__name__, flags=re.ASCII)
        name, count = stem, 1
        while name in self.taken:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name

    # Inputs

    def _given_names(self, known: KnownBlock) -> dict[str, str]:
        return {self.names[value]: name for value, name in known.block.call.given.items() if value in self.names}

    def _rank(self, kind: BlockKind, number: int) -> tuple[int, int]:
        """Arguments as forward has them, then what else is computed, then weights and constants."""
        for known in kind.blocks[:_ASKED]:
            order = list(self._given_names(known))
            if known.given[number].name in order:
                return 0, order.index(known.given[number].name or "")
        return 1 + (kind.blocks[0].given[number].const_value is not None), number

    def _name_given(self, kind: BlockKind, number: int) -> str:
        for known in kind.blocks[:_ASKED]:
            if (name := self._given_names(known).get(known.given[number].name or "")) is not None:
                return name
        return _inside(kind.blocks[0].block, kind.blocks[0].given[number])

    # Outputs

    def _handed_out(self, kind: BlockKind) -> list[int]:
        """Case 3. What forward returns comes first, in its order."""
        found: set[int] = set()
        for known in kind.blocks:
            own = set(known.block.every_node())
            found.update(
                number
                for number, value in enumerate(known.made)
                if number not in found
                and (maker := value.producer()) is not None
                and maker.graph is known.block.nodes[0].graph
                and (value.is_graph_output() or any(reader not in own for reader, _ in value.uses()))
            )
        order = list(self._made_names(kind.blocks[0]))
        ranks = {name: rank for rank, name in enumerate(order)}
        return sorted(found, key=lambda number: (ranks.get(kind.blocks[0].made[number].name or "", len(order)), number))

    def _made_names(self, known: KnownBlock) -> dict[str, str]:
        return {self.names[value]: name for value, name in known.block.call.returned.items() if value in self.names}

    def _name_made(self, kind: BlockKind, number: int) -> str:
        for known in kind.blocks[:_ASKED]:
            if (name := self._made_names(known).get(known.made[number].name or "")) is not None:
                return name
        return _inside(kind.blocks[0].block, kind.blocks[0].made[number])

    # Notes

    def _lines_that_differ(self, kind: BlockKind) -> set[ir.Node]:
        """Case 5."""
        first, *others = [list(own_nodes(known.block.items, self.layout)) for known in kind.blocks]
        return {
            node
            for number, node in enumerate(first)
            if any(other[number].metadata_props.get(SOURCE) != node.metadata_props.get(SOURCE) for other in others)
        }


@dataclass
class _Writing:
    """A copy of the nodes of a block, as the body of a function."""

    bodies: Bodies
    known: KnownBlock
    unsure: set[ir.Node]
    """Nodes whose line is not the same in all blocks of the kind."""
    values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    node_names: set[str] = field(default_factory=set)

    def needed(self) -> set[ir.Value]:
        """What is given to the block and read by its nodes, or by the functions that it calls."""
        found: set[ir.Value] = set()
        layout = self.bodies.layout

        def look(items: Iterable[Item]) -> None:
            for item in items:
                if isinstance(item, Block):
                    inner = self.bodies.known[item]
                    found.update(inner.given[number] for number in self.bodies.bodies[inner.kind].given)
                else:
                    found.update(value for value in item.inputs if value is not None)
                    for graph in graphs_of(item):
                        look(layout.items[graph])

        look(self.known.block.items)
        return found

    def give(self, value: ir.Value, name: str) -> None:
        self.values[value] = ir.Value(name=self._unused(name))

    def constant(self, value: ir.Value) -> ir.Node:
        """Case 1."""
        tensor = constant_of(value)
        assert tensor is not None
        held = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, shape=ir.Shape(tensor.shape.numpy()))
        made = self.values[value] = ir.Value(name=self._unused(value.name or "constant"))
        return ir.Node("", "Constant", [], [ir.AttrTensor("value", held)], outputs=[made])

    def items(self, items: Sequence[Item]) -> list[ir.Node]:
        return [self._call(item) if isinstance(item, Block) else self._node(item) for item in items]

    def rename(self, value: ir.Value, name: str) -> None:
        self.names.discard(value.name or "")
        value.name = self._unused(name)

    def _make(self, value: ir.Value) -> ir.Value:
        made = self.values[value] = ir.Value(name=self._unused(value.name) if value.name else value.name)
        return made

    def _call(self, block: Block) -> ir.Node:
        node = self.bodies.call(block, self.values.__getitem__, self._make)
        self._settle(node)
        return node

    def _node(self, node: ir.Node) -> ir.Node:
        attributes = [self._attribute(held) for held in node.attributes.values()]
        copy = ir.Node(
            node.domain,
            node.op_type,
            [None if value is None else self.values[value] for value in node.inputs],
            attributes,
            overload=node.overload,
            outputs=[self._make(value) for value in node.outputs],
            name=node.name,
            metadata_props={key: text for key, text in node.metadata_props.items() if key != CALL},
        )
        self._settle(copy)
        if node in self.unsure:
            copy.metadata_props.pop(SOURCE, None)
            copy.metadata_props.pop(STACK, None)
        return copy

    def _settle(self, node: ir.Node) -> None:
        path = self.known.block.call.path
        within(node.metadata_props, path, self.bodies.stack_of(self.known.block))
        stem = (node.name or "").removeprefix(self.bodies.scopes.prefix(path))
        name, count = stem, 0
        while name in self.node_names:
            count += 1
            name = f"{stem}_{count}"
        self.node_names.add(name)
        node.name = name

    def _attribute(self, held: ir.Attr) -> ir.Attr:
        if held.type == ir.AttributeType.GRAPH:
            return ir.AttrGraph(held.name, self._graph(held.as_graph()))
        if held.type == ir.AttributeType.GRAPHS:
            return ir.AttrGraphs(held.name, [self._graph(graph) for graph in held.as_graphs()])
        return held

    def _graph(self, graph: ir.Graph) -> ir.Graph:
        inputs = [self._end(value) for value in graph.inputs]
        initial = [self._end(value) for value in graph.initializers.values()]
        for value, copy in zip(graph.initializers.values(), initial, strict=True):
            copy.const_value, copy.shape = value.const_value, value.shape
        nodes = self.items(self.bodies.layout.items[graph])
        outputs = [self.values[value] for value in graph.outputs]
        for value, copy in zip(graph.outputs, outputs, strict=True):
            copy.type, copy.shape = value.type, _size_left(value)
        return ir.Graph(inputs, outputs, nodes=nodes, initializers=initial, name=graph.name)

    def _end(self, value: ir.Value) -> ir.Value:
        made = self._make(value)
        made.type, made.shape = value.type, _size_left(value)
        return made

    def _unused(self, wanted: str) -> str:
        """A value without a name would be none: a dict may have the key ""."""
        stem = wanted or "value"
        name, count = stem, 0
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name


def _inside(block: Block, value: ir.Value) -> str:
    """The name of a value without the path of the module: `attn.weight` of `layers.0.attn.weight`."""
    return (value.name or "value").removeprefix(f"{block.call.path}.")


def _size_left(value: ir.Value) -> ir.Shape | None:
    """Case 4."""
    return None if value.shape is None else ir.Shape([size if isinstance(size, int) else None for size in value.shape])


def constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """What a small constant holds; None of a weight, and of what may change."""
    maker = value.producer()
    if maker is not None:
        held = maker.attributes.get("value") if is_constant(maker) else None
        tensor = None if held is None or held.type != ir.AttributeType.TENSOR else held.as_tensor()
    else:
        tensor = None if value.is_graph_input() else value.const_value
    if tensor is None or isinstance(tensor, WeightTensor) or tensor.nbytes > _SMALL:
        return None
    return None if tensor.dtype == ir.DataType.STRING else tensor


def _is_same_constant(kind: BlockKind, number: int) -> bool:
    held = [constant_of(known.given[number]) for known in kind.blocks]
    return held[0] is not None and all(each is not None and content_of(each) == content_of(held[0]) for each in held)


def _domains(nodes: Iterable[ir.Node]) -> Iterator[str]:
    for node in nodes:
        yield node.domain
        for graph in graphs_of(node):
            yield from _domains(graph)
