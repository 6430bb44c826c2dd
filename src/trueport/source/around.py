"""The statements of a file around a line: those that may catch an error there, and loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache


def attempts_around(source: str, line: int) -> Iterator[ast.Try | ast.With]:
    """The statements around a line that may catch an error, innermost first."""
    for attempt in reversed(attempts_in(source)):
        if _is_within(line, attempt.body):
            yield attempt


@lru_cache(maxsize=64)
def attempts_in(source: str) -> tuple[ast.Try | ast.With, ...]:
    return tuple(node for node in _statements(source) if isinstance(node, (ast.Try, ast.With)))


def _statements(source: str) -> list[ast.stmt]:
    """All statements of a file, by line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    found = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return sorted(found, key=lambda node: node.lineno)


def error_names(kinds: ast.expr) -> Iterator[str]:
    """The names of the errors that an `except` catches."""
    for node in ast.walk(kinds):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def loops_around(source: str, line: int, inside: int = 0) -> list[int]:
    """The lines that tell what the loops around a line go through, innermost first, of those that begin behind one."""
    found = (loop for loop in _loops(source) if loop.lineno > inside and _is_within(line, loop.body))
    return [loop.test.lineno if isinstance(loop, ast.While) else loop.iter.lineno for loop in found]


@lru_cache(maxsize=64)
def _loops(source: str) -> tuple[ast.For | ast.While, ...]:
    return tuple(reversed([node for node in _statements(source) if isinstance(node, (ast.For, ast.While))]))


def _is_within(line: int, body: list[ast.stmt]) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or 0)
