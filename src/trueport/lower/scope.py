"""Lexical scope of the ONNX graph under construction.

ONNX subgraphs may read every value of the graphs around them, and nothing of theirs is seen outside. What translations
share (constants, sizes) is therefore looked up from the inside out, and always added to the innermost scope.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import onnx_ir as ir

DEEPEST = 31
"""Graphs within each other. That of level k lies 1 + 3k protobuf messages deep, a size of one of its values 5 more, and
protobuf reads 100."""


class NestedTooDeep(Exception):
    """A graph would lie so deep in others that no file could be read that holds it."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(eq=False)
class Scope:
    """The nodes of one ONNX graph, and what may be shared by them."""

    outer: Scope | None = None
    nodes: list[ir.Node] = field(default_factory=list)
    shared: dict[str, dict[Hashable, object]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many graphs are around it."""
        return sum(1 for _ in self.outwards()) - 1

    def outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class Shelf(Generic[K, V]):
    """A dictionary with lexical visibility: writes go to the current scope, reads look outwards."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, scope: Scope, key: K) -> V | None:
        for level in scope.outwards():
            if (found := level.shared.get(self.name)) is not None and key in found:
                return found[key]  # type: ignore[return-value]
        return None

    def put(self, scope: Scope, key: K, value: V) -> V:
        scope.shared.setdefault(self.name, {})[key] = value
        return value
