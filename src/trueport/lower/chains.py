"""Branches within branches, one after the other where no file could hold them.

An ONNX subgraph lies three protobuf messages deep in the graph around it, and protobuf reads a hundred. So a chain of
forty `elif`s, or of early returns, cannot be written as forty graphs within each other:

    if a: A                                 waits, r = If(a) then: False, A
    elif b: B                   →                            else: If(b) then: False, B
    elif c: C                                                            else: True, blank
    else: D                                 r = If(waits)    then: If(c) then: C else: D
                                                             else: r

The chain is cut into pieces of `_PIECE` levels. Where a piece ends, it gives blanks, and says that the rest waits; the
next piece is an If that follows. Each arm and each test is run exactly where it was before, and nowhere else.

    1. The rest may read what was made on the way to it: each piece also hands out what the later ones need (`live`).
    2. What an enclosing region makes of the inner results (`outputs`) is made again after each piece, so it must not
       fail for blanks; and nothing else may follow the inner branch there. Otherwise the chain ends.
    3. A model that fits is written as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx_ir as ir
import sympy

from trueport.graph.regions import Control, Node, Number, Region, Value
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.scope import DEEPEST
from trueport.lower.subgraphs import as_scalar, declared, graph_of, new_result
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk

DEEP = DEEPEST - 3
"""Graphs within each other, above which a chain is cut: translations of operators may have graphs of their own."""
_PIECE = 8
"""Branches within each other in one piece."""

Item: TypeAlias = Value | Number


@dataclass(frozen=True)
class ChainLink:
    """The way from a branch to one that ends an arm of it."""

    node: Node
    arm: int
    before: tuple[Node, ...]
    """What the arm does before the inner branch."""
    inner: Node

    @property
    def region(self) -> Region:
        return self.node.regions[self.arm]


def height(node: Node) -> int:
    """How many graphs lie within each other in a node."""
    inner = (height(each) for region in node.regions for each in region.nodes)
    return 1 + max(inner, default=0) if node.regions else 0


def chain_of(node: Node, lowering: Walk) -> list[ChainLink]:
    """The way down through a branch, along its deepest arms, as far as it can be cut."""
    links: list[ChainLink] = []
    while True:
        found = [link for arm in range(2) if (link := _link(node, arm, lowering)) is not None]
        if not found:
            return links
        links.append(max(found, key=lambda link: height(link.inner)))
        node = links[-1].inner


def _link(node: Node, arm: int, lowering: Walk) -> ChainLink | None:
    region = node.regions[arm]
    branches = [i for i, each in enumerate(region.nodes) if each.op is Control.IF]
    if not branches or not all(_is_safe(output) for output in region.outputs):
        return None
    at = branches[-1]
    inner, after = region.nodes[at], region.nodes[at + 1 :]
    values, symbols = _made(inner)
    used, named = _used(after)
    if used & values or any(symbol in symbols and not lowering.op.sizes.is_bound(symbol) for symbol in named):
        return None
    return ChainLink(node, arm, (*region.nodes[:at], *after), inner)


def _is_safe(output: Any) -> bool:
    """Whether an output of a region can be made of blanks: only a division would fail."""
    return not isinstance(output, Number) or all(
        isinstance(part, _SAFE) for part in sympy.preorder_traversal(output.expr)
    )


_SAFE = (
    sympy.Symbol, sympy.Number, sympy.Add, sympy.Mul, sympy.And, sympy.Or, sympy.Not, sympy.Rel,
    sympy.logic.boolalg.BooleanAtom,
)  # fmt: skip


class Chain:
    """Writes one chain."""

    def __init__(self, lowering: Walk, links: Sequence[ChainLink]) -> None:
        self._lowering, self._links, self._op = lowering, links, lowering.op
        cuts = [*range(_PIECE, len(links), _PIECE)]
        self._pieces = list(zip([0, *cuts], [*cuts, len(links)], strict=True))
        self._live = {end: self._needed_after(start, end) for start, end in self._pieces}

    @classmethod
    def is_worth_it(cls, links: Sequence[ChainLink]) -> bool:
        return len(links) > _PIECE

    def lower(self) -> list[Tensor | None]:
        """The results of the first branch, after all pieces."""
        (start, end), *others = self._pieces
        waits, results = self._branch(start, end)
        for start, end in others:
            assert waits is not None
            waits, results = self._piece(start, end, waits, results)
        return results

    def _piece(
        self, start: int, end: int, waits: Tensor, before: list[Tensor | None]
    ) -> tuple[Tensor | None, list[Tensor | None]]:
        """The rest of the chain from a link on, if it waits; `before` are the results if it does not."""
        op, lowering, first = self._op, self._lowering, self._links[0].node
        is_cut = end < len(self._links)
        live = self._live[end][start - 1] if is_cut else []
        made = self._new(live, first, is_cut)
        with op.inside():
            lowering.run(Region(nodes=list(self._links[start - 1].before)))
            with op.translating(self._links[start].node):
                still, inner = self._branch(start, end)
            self._bind(self._links[start].node, inner)
            for link in reversed(self._links[:start]):  # what the regions around make of it
                results = [
                    None
                    if value is None
                    else lowering.tensor(output, onnx_dtype(lowering.twins.everywhere(value).dtype))
                    for output, value in zip(link.region.outputs, link.node.outputs, strict=True)
                ]
                if link.node is not first:
                    self._bind(link.node, results)
            handed = [] if still is None else [still, *self._handed(live)]
            then = graph_of(lowering, "then_branch", [], [*handed, *_kept(results)])
        with op.inside():
            handed = [op.const(False), *self._blanks(live)] if is_cut else []
            orelse = graph_of(lowering, "else_branch", [], [*handed, *_kept(before)])
        return self._append(waits, (then, orelse), made, live, first, is_cut)

    def _branch(self, at: int, end: int) -> tuple[Tensor | None, list[Tensor | None]]:
        """A branch of the chain: whether the rest waits (None in the last piece), and its results."""
        op, lowering, link = self._op, self._lowering, self._links[at]
        is_cut = end < len(self._links)
        predicate = as_scalar(lowering, lowering.tensor(link.node.args[0], ir.DataType.BOOL))
        live = self._live[end][at] if is_cut else []
        made = self._new(live, link.node, is_cut)
        arms = []
        for arm, name in enumerate(("then_branch", "else_branch")):
            region = link.node.regions[arm]
            with op.inside():
                if arm != link.arm:
                    lowering.run(region)
                    waits: list[Tensor] = [op.const(False), *self._blanks(live)]
                elif at + 1 == end and is_cut:
                    waits = [op.const(True), *self._blanks(live)]
                else:
                    lowering.run(Region(nodes=list(link.before)))
                    waits = self._inner(at + 1, end)
                    waits += self._handed(live)
                if arm == link.arm and at + 1 == end and is_cut:
                    results = self._blanks([value for value in link.node.outputs if value is not None])
                else:
                    outputs = zip(region.outputs, made[len(live) + is_cut :], strict=True)
                    results = [lowering.tensor(out, onto.element) for out, onto in outputs if onto is not None]
                arms.append(graph_of(lowering, name, [], [*(waits if is_cut else ()), *results]))
        return self._append(predicate, arms, made, live, link.node, is_cut)

    def _inner(self, at: int, end: int) -> list[Tensor]:
        """The next branch of the chain, in the arm of the one before: whether the rest waits."""
        if at == len(self._links):
            self._lowering.run(Region(nodes=[self._links[-1].inner]))
            return []
        node = self._links[at].node
        with self._op.translating(node):
            waits, results = self._branch(at, end)
        self._bind(node, results)
        return [] if waits is None else [waits]

    def _new(self, live: Sequence[Item], node: Node, is_cut: bool) -> list[Tensor | None]:
        """What an If of the chain gives: whether the rest waits, what that needs, and the results."""
        op, lowering = self._op, self._lowering
        results = [new_result(lowering, value) for value in node.outputs]
        if not is_cut:
            return results
        made = [declared(lowering, item, "waiting") for item in live]
        for each in (*made, *_kept(results)):  # blanks have other sizes
            sizes = each.sizes or ()
            each.shape = ir.Shape([size if isinstance(size, int) else None for size in sizes])
        return [Tensor(op, op.new_name("waits"), ir.DataType.BOOL, ()), *made, *results]

    def _append(
        self,
        predicate: Tensor,
        arms: Sequence[ir.Graph],
        made: Sequence[Tensor | None],
        live: Sequence[Item],
        node: Node,
        is_cut: bool,
    ) -> tuple[Tensor | None, list[Tensor | None]]:
        attributes = [ir.AttrGraph(name, arm) for name, arm in zip(("then_branch", "else_branch"), arms, strict=True)]
        self._op.append("If", [predicate], attributes, _kept(made))
        if not is_cut:
            return None, list(made)
        handed = made[1 : 1 + len(live)]
        for item, tensor in sorted(zip(live, handed, strict=True), key=lambda pair: isinstance(pair[0], Value)):
            assert tensor is not None
            self._lowering.bind(item, tensor)  # numbers first, since the axes of tensors tell others
        return made[0], list(made[1 + len(live) :])

    def _bind(self, node: Node, results: Sequence[Tensor | None]) -> None:
        for value, tensor in zip(node.outputs, results, strict=True):
            if value is not None and tensor is not None:
                self._lowering.bind(value, tensor)

    def _handed(self, live: Iterable[Item]) -> list[Tensor]:
        everywhere = self._lowering.twins.everywhere
        return [self._lowering.tensor(item, onnx_dtype(everywhere(item).dtype)) for item in live]

    def _blanks(self, items: Iterable[Item]) -> list[Tensor]:
        """What nobody reads, with no elements where that is possible."""
        found = []
        for item in items:
            value = self._lowering.twins.everywhere(item)
            zero = self._op.const(0, onnx_dtype(value.dtype))
            sizes = [size if isinstance(size, int) else 0 for size in (value.shape if isinstance(value, Value) else ())]
            found.append(self._op.expand(zero, sizes) if sizes else zero)
        return found

    def _needed_after(self, start: int, end: int) -> dict[int, list[Item]]:
        """By link from which on it is made: what is made on the way to a cut, and read behind it."""
        if end == len(self._links):
            return {}
        values, symbols = _used(self._links[end - 1].region.nodes)
        for link in self._links[:end]:
            more, named = _read(link.region.outputs)
            values, symbols = values | more, symbols | named
        symbols = {symbol for symbol in symbols if not self._op.sizes.is_bound(symbol)}
        found: dict[int, list[Item]] = {}
        items: list[Item] = []
        for at in reversed(range(max(start - 1, 0), end)):
            made = _items(self._links[at].before) if at + 1 < end else []
            items = [*(item for item in made if _is_among(item, values, symbols)), *items]
            found[at] = _once(items)
        return found


def _kept(tensors: Iterable[Tensor | None]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]


def _is_among(item: Item, values: set[Value], symbols: set[sympy.Basic]) -> bool:
    return item in values if isinstance(item, Value) else item.expr in symbols


def _once(items: Iterable[Item]) -> list[Item]:
    return list({item if isinstance(item, Value) else item.expr: item for item in items}.values())


def _items(nodes: Iterable[Node]) -> list[Item]:
    """The values that nodes make, and the numbers that those tell."""
    numbers: dict[sympy.Basic, Number] = {}
    values = []
    for node in nodes:
        for made in node.outputs:
            if isinstance(made, Number):
                numbers |= {symbol: Number(symbol, made.kind) for symbol in made.expr.free_symbols}
            elif made is not None:
                values.append(made)
                sizes = (size for size in made.shape if not isinstance(size, int))
                numbers |= {s: Number(s, int) for size in sizes for s in size.free_symbols if s not in numbers}
    return [*numbers.values(), *values]


def _made(node: Node) -> tuple[set[Value], set[sympy.Basic]]:
    items = _items([node])
    numbers = {item.expr for item in items if isinstance(item, Number)}
    return {item for item in items if isinstance(item, Value)}, numbers


def _used(nodes: Iterable[Node]) -> tuple[set[Value], set[sympy.Basic]]:
    """What nodes and all within them read; of the symbols also those of which sizes are made."""
    found = [part for node in Region(nodes=list(nodes)).walk() for part in _parts(node)]
    return _read(found)


def _parts(node: Node) -> Iterator[Any]:
    yield from (*node.args, *node.kwargs.values(), *node.outputs)
    for region in node.regions:
        yield from region.outputs


def _read(parts: Iterable[Any]) -> tuple[set[Value], set[sympy.Basic]]:
    values: set[Value] = set()
    symbols: set[sympy.Basic] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, Value):
            values.add(part)
            waiting += part.shape
        elif isinstance(part, Number):
            symbols |= part.expr.free_symbols
        elif isinstance(part, sympy.Basic):
            symbols |= part.free_symbols
        elif isinstance(part, (list, tuple)):
            waiting += part
    return values, symbols
