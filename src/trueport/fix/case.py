"""What a fix gets to see (a `Case`), and what it gives back (a `Proposal`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from trueport.diagnostics.base import Diagnostic
from trueport.fix.command import Command
from trueport.fix.edit import Edit, SourceFile
from trueport.source import Where
from trueport.source.scene import NamedValue, Scene

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Proposal:
    """One way out of a finding: edits of the source, another command, or both."""

    says: str
    """What is done, in a few words: `use the size itself: x.shape[0]`."""
    edits: tuple[Edit, ...] = ()
    command: Command | None = None
    changes: str = ""
    """What eager gives otherwise than before, where that is the point of it. '' where eager's answers must stay."""
    spread: bool = False
    """A size of 1 may have been spread to a fixed number before, and stay 1 now."""


@dataclass(frozen=True)
class Case:
    """A finding, and the source around it as it is by now: edits of other fixes may have been made already."""

    found: Diagnostic
    where: Where
    """The line of the finding; where it has none, the first line of the model's forward."""
    source: SourceFile
    scene: Scene
    command: Command
    read: Callable[[Path], SourceFile]
    """Any other file, as it is by now."""
    forward: Where | None = None
    """The first line of the model's forward."""
    target: Where | None = None
    """Where the thing that the command names is defined."""

    @property
    def facts(self) -> dict[str, str]:
        return dict(self.found.facts)

    @cached_property
    def names(self) -> dict[str, tuple[NamedValue, ...]]:
        """What the names around the line held, once for each size that eager was run with."""
        return self.scene.at((self.where.file, self.where.line))

    @cached_property
    def function(self) -> Function | None:
        """The innermost function around the line."""
        around = [node for node in ast.walk(self.source.tree) if isinstance(node, Function) and self._holds(node)]
        return max(around, key=lambda node: node.lineno, default=None)

    @cached_property
    def owner(self) -> ast.ClassDef | None:
        """The innermost class around the line."""
        around = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.ClassDef) and self._holds(node)]
        return max(around, key=lambda node: node.lineno, default=None)

    @cached_property
    def statement(self) -> ast.stmt | None:
        """The innermost statement around the line."""
        around = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.stmt) and self._holds(node)]
        return max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)

    def on_the_line(self, kind: type[Node]) -> Iterator[Node]:
        """The nodes of a kind in the statement that the finding points at, in the order of the text.

        Of a statement with a body (`if`, `for`), its head alone.
        """
        if self.statement is None:
            return
        body = {id(inner) for child in _blocks(self.statement) for inner in ast.walk(child)}
        found = [node for node in ast.walk(self.statement) if isinstance(node, kind) and id(node) not in body]
        yield from sorted(found, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def _holds(self, node: ast.stmt) -> bool:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        return first <= self.where.line <= (node.end_lineno or node.lineno)


def _blocks(statement: ast.stmt) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers"):
        yield from getattr(statement, name, [])
