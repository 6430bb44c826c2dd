"""Which nodes of a model are one call of a module.

Every node notes the calls within which it was made (`CALL`). Three things keep a call from being a block as it is:

1. A node that was made for one call is read by others, too: the size that all layers ask for, or what `common` found to
   be computed in each of them. It belongs to the innermost call around all of its readers, unless it reads what is
   computed inside the block that it would leave.
2. A value leaves the block and something that is made of it comes back. A function has all of its inputs when it
   begins, so there is none for such a call; the calls inside of it are looked at instead.
3. A few nodes of a call are in another graph than the others (what a loop has outside of its body). Those are left.

The work grows with the number of nodes, as long as the nodes of a call lie close together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir
import torch

from trueport.graph.regions import ModuleCall
from trueport.lower.noted import CALL

FEWEST = 3
"""Nodes of a block; a function of one or two says less than they do."""

Chain = tuple[int, ...]
"""Calls within each other, outermost first."""


@dataclass(eq=False)
class Block:
    """The nodes of one call of a module."""

    call: ModuleCall
    nodes: Sequence[ir.Node]
    items: Sequence[Item] = ()

    def every_node(self) -> Iterator[ir.Node]:
        """Those of the graphs inside of its nodes, too."""
        for node in self.nodes:
            yield node
            for graph in graphs_of(node):
                yield from graph.all_nodes()


Item = ir.Node | Block


@dataclass(frozen=True)
class Layout:
    """What each graph of a model consists of, in an order in which it can be computed."""

    items: Mapping[ir.Graph, Sequence[Item]]
    reads: Mapping[ir.Node, frozenset[ir.Value]]
    """What a node reads, by the graphs inside of it as well."""


def laid_out(
    graph: ir.Graph, calls: Sequence[ModuleCall], kinds: Collection[type[torch.nn.Module]] | None = None
) -> Layout:
    """`kinds` are the classes of modules of which blocks are to be made, whatever their size; None for all."""
    return _Laying(graph, calls, kinds).done()


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def is_constant(node: ir.Node) -> bool:
    return node.op_type == "Constant" and not node.domain


def _is_block(kind: type[torch.nn.Module]) -> bool:
    """A module that somebody wrote, or one of torch's that is made of others. A plain `Sequential` says nothing."""
    return not kind.__module__.startswith("torch.") or kind in _COMPOSED


_COMPOSED = frozenset(
    getattr(torch.nn, name)
    for name in (
        "MultiheadAttention",
        "Transformer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
    )
)


@dataclass
class _Laying:
    graph: ir.Graph
    calls: Sequence[ModuleCall]
    kinds: Collection[type[torch.nn.Module]] | None
    order: list[tuple[ir.Graph, ir.Node]] = field(default_factory=list)
    """Every node, with those of a graph after the node that holds it."""
    reads: dict[ir.Node, frozenset[ir.Value]] = field(default_factory=dict)
    holder: dict[ir.Graph, ir.Node | None] = field(default_factory=dict)
    place: dict[ir.Node, Chain] = field(default_factory=dict)
    items: dict[ir.Graph, Sequence[Item]] = field(default_factory=dict)

    def done(self) -> Layout:
        self._walk(self.graph, None)
        self._placed()
        self._only_in_one_graph()
        for graph, holder in self.holder.items():
            self.items[graph] = self._arranged(graph, () if holder is None else self.place[holder])
        return Layout(self.items, self.reads)

    def _walk(self, graph: ir.Graph, holder: ir.Node | None) -> frozenset[ir.Value]:
        """Returns what the graph reads of those around it."""
        self.holder[graph] = holder
        own, read = {*graph.inputs, *graph.initializers.values()}, set[ir.Value]()
        for node in graph:
            self.order.append((graph, node))
            inside = [self._walk(each, node) for each in graphs_of(node)]
            reads = frozenset(value for value in node.inputs if value is not None).union(*inside)
            self.reads[node] = reads
            read |= reads
            own.update(node.outputs)
        return frozenset(read - own)

    # Case 1

    def _placed(self) -> None:
        """The calls that each node belongs to."""
        first: dict[ir.Node, Chain] = {}
        wish: dict[ir.Node, Chain] = {}
        for graph, node in reversed(self.order):
            wish[node] = first[node] = self._noted(node)
            if node.metadata_props.get(CALL, "").endswith("*"):
                for output in node.outputs:
                    if output.is_graph_output():
                        holder = self.holder[graph]
                        wish[node] = _common(wish[node], () if holder is None else self._noted(holder))
                    for reader, _ in output.uses():
                        wish[node] = _common(wish[node], wish[reader])
        for _, node in self.order:
            chain, depth = first[node], len(wish[node])
            if depth < len(chain):
                for value in self.reads[node]:
                    maker = value.producer()
                    if maker is not None and not is_constant(maker):
                        depth = max(depth, len(_common(self.place[maker], chain)))
            self.place[node] = chain[:depth]

    def _noted(self, node: ir.Node) -> Chain:
        noted = node.metadata_props.get(CALL, "").rstrip("*")
        return tuple(call for call in map(int, filter(None, noted.split("."))) if self._is_chosen(call))

    def _is_chosen(self, call: int) -> bool:
        kind = self.calls[call].kind
        return _is_block(kind) if self.kinds is None else issubclass(kind, tuple(self.kinds))

    # Case 3

    def _only_in_one_graph(self) -> None:
        counts: dict[int, Counter[ir.Graph]] = {}
        for graph, node in self.order:
            for call in self._inside(graph, node):
                counts.setdefault(call, Counter())[graph] += 1
        home = {call: found.most_common(1)[0][0] for call, found in counts.items() if len(found) > 1}
        if not home:
            return
        for graph, node in self.order:
            around = self._base(graph)
            rest = [call for call in self._inside(graph, node) if home.get(call, graph) is graph]
            if self.place[node][: len(around)] == around:
                self.place[node] = (*around, *rest)

    def _base(self, graph: ir.Graph) -> Chain:
        holder = self.holder[graph]
        return () if holder is None else self.place[holder]

    def _inside(self, graph: ir.Graph, node: ir.Node) -> Chain:
        """The calls of a node that are not those of the node that holds its graph."""
        around, chain = self._base(graph), self.place[node]
        return chain[len(around) :] if chain[: len(around)] == around else ()

    # Case 2

    def _arranged(self, graph: ir.Graph, around: Chain) -> list[Item]:
        nodes = [node for node in graph if not is_constant(node)]
        chains = {node: self._inside(graph, node) for node in nodes}
        return [*(node for node in graph if is_constant(node)), *self._grouped(nodes, chains, 0)]

    def _grouped(self, nodes: Sequence[ir.Node], chains: Mapping[ir.Node, Chain], depth: int) -> list[Item]:
        """These nodes, with those of each call from `depth` on in a block, where one can be made."""
        order: list[Item | None] = list(nodes)
        at: dict[Item, int] = {node: index for index, node in enumerate(nodes)}
        pending = [(group, depth) for group in reversed(_by_call(nodes, chains, depth))]
        while pending:
            (call, unordered), level = pending.pop()
            group = sorted(unordered, key=at.__getitem__)  # a block that was made may have moved some
            if self._is_large(group) and (among := self._apart(order, at, group)) is not None:
                block = Block(self.calls[call], group, self._grouped(group, chains, level + 1))
                first, last = at[group[0]], at[group[-1]]
                before, after = among
                arranged: list[Item] = [*before, block, *after]
                order[first : last + 1] = [*arranged, *[None] * (last + 1 - first - len(arranged))]
                at.update((item, first + index) for index, item in enumerate(arranged))
            else:
                pending += [(inner, level + 1) for inner in reversed(_by_call(group, chains, level + 1))]
        return [item for item in order if item is not None]

    def _is_large(self, nodes: Sequence[ir.Node]) -> bool:
        return self.kinds is not None or len(nodes) >= FEWEST or any(True for node in nodes for _ in graphs_of(node))

    def _apart(
        self, order: Sequence[Item | None], at: Mapping[Item, int], group: Sequence[ir.Node]
    ) -> tuple[list[Item], list[Item]] | None:
        """What lies among the nodes of a group: what can be computed before all of them, and after. None where
        something needs some of them, and is needed by others."""
        own = set(group)
        made, tainted = set[ir.Value](), set[ir.Value]()
        before, after = list[Item](), list[Item]()
        for item in order[at[group[0]] : at[group[-1]] + 1]:
            if item is None:
                continue
            nodes = item.nodes if isinstance(item, Block) else (item,)
            reads = [self.reads[node] for node in nodes]
            if item in own:
                if any(not tainted.isdisjoint(read) for read in reads):
                    return None
                made.update(item.outputs)
            elif any(not tainted.isdisjoint(read) or not made.isdisjoint(read) for read in reads):
                tainted.update(output for node in nodes for output in node.outputs)
                after.append(item)
            else:
                before.append(item)
        return before, after


def _by_call(nodes: Sequence[ir.Node], chains: Mapping[ir.Node, Chain], depth: int) -> list[tuple[int, list[ir.Node]]]:
    found: dict[int, list[ir.Node]] = {}
    for node in nodes:
        if len(chains[node]) > depth:
            found.setdefault(chains[node][depth], []).append(node)
    return list(found.items())


def _common(one: Chain, other: Chain) -> Chain:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return one[:length]
