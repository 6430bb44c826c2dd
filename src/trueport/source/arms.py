"""Where the arms of a branch, or the body of a loop, give a name its value."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence

from trueport.source.place import Where


def assignments(where: Where, name: str) -> tuple[Where | None, Where | None]:
    """The last assignment to `name` in the body and in the `else` of the `if`, `while` or `for` on this line."""
    for node in ast.walk(_tree(where.file)):
        if isinstance(node, ast.If | ast.While | ast.For) and node.lineno == where.line:
            return _last(node.body, name, where), _last(node.orelse, name, where)
    return None, None


def returned_name(where: Where) -> str:
    """The name that the function around this line ends by returning; '' where it is not a plain name."""
    name = ""
    for node in ast.walk(_tree(where.file)):
        around = isinstance(node, ast.FunctionDef) and node.lineno <= where.line <= (node.end_lineno or 0)
        if around and isinstance(node, ast.FunctionDef):
            last = node.body[-1]
            name = last.value.id if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) else ""
    return name


def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


def _last(block: Sequence[ast.stmt], name: str, where: Where) -> Where | None:
    found = [target for statement in block for target in _targets(statement) if target.id == name]
    if not found:
        return None
    return Where(where.file, found[-1].lineno, where.function)


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node
