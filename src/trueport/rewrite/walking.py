"""Going over syntax trees and copying them, at a fraction of what `ast` and `copy` take for it.

A function is gone over a dozen times while it is rewritten, and a third of its nodes are contexts and operators
(`ast.Load`, `ast.Add`), which are looked at through the node that has them: nothing here goes into those. And where
only statements are looked for, expressions are not gone into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What has names and exits of its own."""
_WITHOUT_NODES = frozenset(
    "ctx op ops id attr arg name kind conversion type_comment level module is_async simple rest kwd_attrs".split()
)
"""Fields that hold contexts, operators, words and numbers."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class _Fields(dict[type, tuple[str, ...]]):
    """The fields in which a node of some kind may hold others."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        found = tuple(field for field in kind._fields if field not in _WITHOUT_NODES)  # type: ignore[attr-defined]
        if issubclass(kind, (ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal)):
            found = ()
        elif kind.__name__ == "TypeAlias":  # `type A = …`, whose name is a node
            found = ("name", *found)
        self[kind] = found
        return found


class _Methods(dict[type, str]):
    """What the method of a visitor is called that is asked about nodes of some kind."""

    def __missing__(self, kind: type) -> str:
        self[kind] = found = f"visit_{kind.__name__}"
        return found


_FIELDS, _METHODS = _Fields(), _Methods()


def children(node: ast.AST) -> list[Any]:
    found: list[Any] = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += value if None not in value else [part for part in value if part is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(*nodes: ast.AST) -> Iterator[Any]:
    """The nodes and all that they hold, in no particular order."""
    waiting: list[Any] = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def statements_within(statements: Iterable[ast.AST], into_functions: bool = False) -> Iterator[ast.AST]:
    """The statements and those in their blocks; by default not those of functions and classes among them."""
    for statement in statements:
        yield statement
        if into_functions or not isinstance(statement, FUNCTIONS):
            yield from statements_within(directly_in(statement), into_functions)


def directly_in(node: ast.AST) -> list[Any]:
    """The statements of a node's own blocks, and its handlers and cases."""
    found: list[Any] = []
    for block in _BLOCKS:
        inner = getattr(node, block, None)
        if isinstance(inner, list):
            found += inner
    return found


def copied(node: Node) -> Node:
    """A copy that shares nothing but contexts and operators, which are never changed; marks of ours are copied too."""
    kind = type(node)
    made = kind.__new__(kind)
    put = made.__dict__
    for name, value in node.__dict__.items():
        if isinstance(value, list):
            put[name] = [copied(part) if isinstance(part, ast.AST) else part for part in value]
        elif isinstance(value, ast.AST) and value._fields:
            put[name] = copied(value)
        else:
            put[name] = value
    return made


class Visitor:
    """`ast.NodeVisitor`, without a look at what no method of the class asks for and that holds no other nodes."""

    def visit(self, node: ast.AST) -> Any:
        kind = type(node)
        method = getattr(self, _METHODS[kind], None)
        if method is not None:
            return method(node)
        return self.generic_visit(node) if _FIELDS[kind] else node

    def generic_visit(self, node: ast.AST) -> Any:
        for child in children(node):
            self.visit(child)


class Transformer(Visitor):
    """The same for `ast.NodeTransformer`."""

    def generic_visit(self, node: ast.AST) -> Any:
        for field in _FIELDS[type(node)]:
            value = getattr(node, field, None)
            if isinstance(value, list):
                value[:] = self._parts(value)
            elif isinstance(value, ast.AST):
                made = self.visit(value)
                if made is not value:
                    setattr(node, field, made)
        return node

    def _parts(self, values: list[Any]) -> Iterator[Any]:
        for value in list(values):
            made = None if value is None else self.visit(value)
            if isinstance(made, list):
                yield from made
            elif made is not None or value is None:
                yield made
