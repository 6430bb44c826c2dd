"""What the writer of a function (`statements.py`) offers to the constructs that it calls, each in a file of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from trueport.fix.portable.tests import Tests
from trueport.fix.portable.values import SeenInFunction, SeenValue


@dataclass(frozen=True)
class PortableStyle:
    """What torch may ask for where the plain form is refused; each is tried in turn."""

    clone_all: bool = False
    """Give a copy of everything that leaves an arm or a round."""
    flat: bool = False
    """Inside an arm, compute both arms and choose with torch.where: torch.onnx does not take every torch.cond there."""
    both_arms: bool = False
    """The same everywhere."""
    tensor_counters: bool = False
    """Carry integers through loops as tensors."""


@dataclass(frozen=True)
class Inside:
    """Where a block stands in the new code."""

    after: frozenset[str] = frozenset()
    """Names that are read behind it."""
    arm: dict[str, bool] | None = None
    """In a function of ours that ends with the user's `return`: which of its names may alias what it was given."""
    augmented: frozenset[str] = frozenset()
    """Names that must not be written in place: `y += 1` is `y = y + 1`."""


class Writing(Protocol):
    """`Portable`, which says what each of these is."""

    seen: SeenInFunction
    style: PortableStyle
    tensors: dict[str, SeenValue]
    restructured: set[int]
    replaced: dict[int, str]
    counters: set[str]
    flags: set[str]
    imports: set[str]
    loop_depth: int
    test: Tests

    @property
    def both_arms(self) -> bool: ...

    def in_arm(self) -> AbstractContextManager[None]: ...

    def block(self, statements: Sequence[ast.stmt], indent: str, inside: Inside) -> list[str]: ...

    def decides(self, node: ast.AST) -> bool: ...

    def write(self, node: ast.expr) -> str: ...

    def value(self, node: ast.expr) -> SeenValue | None: ...

    def name(self, name: str, line: int) -> SeenValue | None: ...

    def is_known(self, name: str, line: int) -> bool: ...

    def apart(self, node: ast.expr, names: Mapping[str, bool]) -> str: ...

    def fresh(self, *wanted: str) -> list[str]: ...

    def in_order(self, names: Iterable[str]) -> list[str]: ...

    def source_of(self, node: ast.expr) -> str: ...
