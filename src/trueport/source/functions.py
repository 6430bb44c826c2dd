"""Functions in the syntax tree of their file."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def function_at(file: str, first_line: int) -> Function | None:
    """The function whose code object begins on this line; None if there is none, or no source."""
    return _functions("".join(linecache.getlines(file))).get(first_line)


@lru_cache(maxsize=16)
def _functions(source: str) -> dict[int, Function]:
    """By the line that a code object begins on: that of its first decorator, if it has one."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found: dict[int, Function] = {}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            found.setdefault(min([node.lineno, *(d.lineno for d in decorators)]), node)
    return found
