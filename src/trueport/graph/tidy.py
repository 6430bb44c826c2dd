"""Leaving out what nobody reads: nodes, outputs of branches, and values that a loop only passes along.

    1. A node none of whose outputs is read is left out (no operator of a functionalised graph has another effect).
    2. An output of an `If` that is not read is left out of the node and of both arms.
    3. A carried value of a `Loop` is left out when neither its last value nor its value in a round is read.

Sizes count as read wherever a value of that size is: a translation may ask for any size of what it is given. What has
such a size first (an axis of `nonzero`) is where it comes from, and stays; other values of the same size do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from trueport.graph.regions import Control, Node, Number, Region, Value, numbers_in, symbols_in, values_in


@dataclass
class _Wanted:
    """What is read later: values, and symbols of sizes and numbers."""

    sources: Set[Value | Number]
    """The values that have some size first, and numbers."""
    values: set[Value] = field(default_factory=set)
    symbols: set[sympy.Basic] = field(default_factory=set)

    def read(self, argument: Any) -> None:
        self.values.update(values_in(argument))
        self.symbols |= symbols_in(argument)

    def has(self, output: Any) -> bool:
        """Whether an output is read, or is where a symbol that is read comes from."""
        return output in self.values or (output in self.sources and not self.symbols.isdisjoint(output.binds))

    def add(self, other: _Wanted) -> None:
        self.values |= other.values
        self.symbols |= other.symbols


def tidy(root: Region) -> Region:
    """A graph's outermost region without what its outputs do not need."""
    return _tidied_region(root, root.outputs, _sources(root, frozenset()))[0]


def _sources(region: Region, known: Set[sympy.Basic]) -> set[Value | Number]:
    """The values of a region, and of those in it, that have a size which nothing before them has, and all numbers."""
    found: set[Value | Number] = set()
    here = set(known)

    def note(values: Iterable[Value | Number | None]) -> None:
        for value in values:
            if value is not None and (numbers_in(value) or not value.binds <= here):
                found.add(value)
                here.update(value.binds)

    note(region.params)
    for node in region.nodes:
        for inner in node.regions:
            found |= _sources(inner, here)
        note(node.outputs)
    return found


def _tidied_region(region: Region, outputs: Sequence[Any], sources: Set[Value | Number]) -> tuple[Region, _Wanted]:
    """A region that yields `outputs` only, and what it reads, of itself and of the scopes around it."""
    wanted = _Wanted(sources)
    wanted.read(list(outputs))
    kept: list[Node] = []
    for node in reversed(region.nodes):
        left = _tidied(node, wanted)
        if left is None:
            continue
        kept.append(left)
        wanted.read(left.given)
        for output in values_in(left.outputs):
            wanted.symbols |= output.free_symbols
    return Region(list(region.params), kept[::-1], list(outputs)), wanted


def _tidied(node: Node, wanted: _Wanted) -> Node | None:
    if node.outputs and not any(wanted.has(output) for output in node.outputs):
        return None
    if node.op is Control.IF:
        return _tidied_if(node, wanted)
    if node.op is Control.LOOP:
        return _tidied_loop(node, wanted)
    return node


def _tidied_if(node: Node, wanted: _Wanted) -> Node:
    read = [wanted.has(output) for output in node.outputs]
    arms = []
    for region in node.regions:
        arm, inner = _tidied_region(region, _only(region.outputs, read), wanted.sources)
        arms.append(arm)
        wanted.add(inner)
    return replace(node, outputs=tuple(_only(node.outputs, read)), regions=tuple(arms))


def _tidied_loop(node: Node, wanted: _Wanted) -> Node:
    (body,) = node.regions
    carried = len(body.params) - 1
    going, *results = body.outputs
    read = [wanted.has(output) for output in node.outputs]
    while True:
        tidied, inner = _tidied_region(body, [going, *_only(results, read)], wanted.sources)
        more = [read[i] or (i < carried and inner.has(body.params[i + 1])) for i in range(len(read))]
        if more == read:
            break
        read = more
    wanted.add(inner)
    trips, first, *starts = node.args
    keeps = read[:carried]
    tidied.params = [body.params[0], *_only(body.params[1:], keeps)]
    return replace(
        node,
        args=(trips, first, *_only(starts, keeps)),
        outputs=tuple(_only(node.outputs, read)),
        regions=(tidied,),
    )


def _only(items: Iterable[Any], kept: Iterable[bool]) -> list[Any]:
    return [item for item, keep in zip(items, kept, strict=True) if keep]
