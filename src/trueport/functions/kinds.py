"""Which blocks are the same, but for what they are given.

Two blocks are of one kind if their modules are of one class, and their nodes are the same operators, with the same
attributes, reading each other in the same way. Values are numbered for that: those that a block makes, and those that
it is given, in the order in which they are read. Weights and constants are among what it is given, so that layers which
differ in nothing else are of one kind. Of a block inside of another only its kind is compared, and what it is given: so
the work grows with the number of nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir
import torch

from trueport.functions.blocks import Block, Item, Layout

_LARGEST = 1 << 16
"""Bytes of an attribute that is compared; a larger one is like no other."""


@dataclass(eq=False)
class BlockKind:
    """Blocks that can be one function."""

    module: type[torch.nn.Module]
    blocks: list[KnownBlock] = field(default_factory=list)


@dataclass(eq=False)
class KnownBlock:
    """A block, and its values by their numbers: equal numbers mean the same in all blocks of a kind."""

    block: Block
    kind: BlockKind
    given: Sequence[ir.Value]
    made: Sequence[ir.Value]


def kinds_of(layout: Layout) -> tuple[list[BlockKind], Mapping[Block, KnownBlock]]:
    """The kinds, those of inner blocks first, and what is known of each block."""
    finding = _Finding(layout)
    for items in layout.items.values():
        for item in items:
            if isinstance(item, Block):
                finding.known(item)
    return list(finding.kinds.values()), finding.blocks


@dataclass
class _Finding:
    layout: Layout
    kinds: dict[Hashable, BlockKind] = field(default_factory=dict)
    blocks: dict[Block, KnownBlock] = field(default_factory=dict)

    def known(self, block: Block) -> KnownBlock:
        found = self.blocks.get(block)
        if found is None:
            numbers = _Numbers(self)
            key = (block.call.kind, numbers.items(block.items))
            kind = self.kinds.setdefault(key, BlockKind(block.call.kind))
            found = self.blocks[block] = KnownBlock(block, kind, list(numbers.given), list(numbers.made))
            kind.blocks.append(found)
        return found


@dataclass
class _Numbers:
    """The values of one block."""

    finding: _Finding
    given: dict[ir.Value, int] = field(default_factory=dict)
    made: dict[ir.Value, int] = field(default_factory=dict)

    def items(self, items: Sequence[Item]) -> Hashable:
        return tuple(self._block(item) if isinstance(item, Block) else self._node(item) for item in items)

    def _read(self, value: ir.Value | None) -> Hashable:
        if value is None:
            return None
        if (number := self.made.get(value)) is not None:
            return "made", number
        return "given", self.given.setdefault(value, len(self.given))

    def _make(self, values: Sequence[ir.Value]) -> None:
        for value in values:
            self.made[value] = len(self.made)

    def _block(self, block: Block) -> Hashable:
        inner = self.finding.known(block)
        key = (id(inner.kind), tuple(self._read(value) for value in inner.given))
        self._make(inner.made)
        return key

    def _node(self, node: ir.Node) -> Hashable:
        read = tuple(self._read(value) for value in node.inputs)
        attributes = tuple((name, self._attribute(held)) for name, held in sorted(node.attributes.items()))
        self._make(node.outputs)
        return node.domain, node.op_type, node.overload, read, attributes, tuple(bool(out.name) for out in node.outputs)

    def _attribute(self, held: ir.Attr) -> Hashable:
        match held.type:
            case ir.AttributeType.GRAPH:
                return self._graph(held.as_graph())
            case ir.AttributeType.FLOAT:
                return held.type, held.as_float().hex()
            case ir.AttributeType.FLOATS:
                return held.type, tuple(each.hex() for each in held.as_floats())
            case ir.AttributeType.INT | ir.AttributeType.STRING:
                return held.type, held.value
            case ir.AttributeType.INTS | ir.AttributeType.STRINGS:
                return held.type, tuple(held.value)
            case ir.AttributeType.TENSOR:
                return held.type, content_of(held.as_tensor())
        return held.type, id(held)

    def _graph(self, graph: ir.Graph) -> Hashable:
        self._make(graph.inputs)
        initial = list(graph.initializers.values())
        self._make(initial)
        held = tuple(content_of(value.const_value) for value in initial)
        items = self.items(self.finding.layout.items[graph])
        ends = tuple((str(value.type), _sizes(value)) for value in (*graph.inputs, *graph.outputs))
        return held, items, ends, tuple(self._read(value) for value in graph.outputs)


def _sizes(value: ir.Value) -> Hashable:
    """The sizes that are numbers."""
    return None if value.shape is None else tuple(size if isinstance(size, int) else None for size in value.shape)


def content_of(tensor: ir.TensorProtocol | None) -> Hashable:
    """Equal for equal tensors; what is large is like no other."""
    if tensor is None or tensor.nbytes > _LARGEST or tensor.dtype == ir.DataType.STRING:
        return id(tensor)
    return int(tensor.dtype), tuple(tensor.shape.numpy()), tensor.tobytes()


def own_nodes(items: Sequence[Item], layout: Layout) -> Iterator[ir.Node]:
    """The nodes among these, and those of the graphs inside of them, without those of blocks; in the same order for
    all blocks of a kind."""
    for item in items:
        if isinstance(item, ir.Node):
            yield item
            for _, held in sorted(item.attributes.items()):
                if held.type == ir.AttributeType.GRAPH:
                    yield from own_nodes(layout.items[held.as_graph()], layout)
