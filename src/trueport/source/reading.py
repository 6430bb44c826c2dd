"""Reading the user's source: its lines, and which columns of a line are the expression that matters.

Lines come from `linecache`, so that notebook cells and code compiled under a made-up file name are read as well.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache

from trueport.source.place import Where

Evaluated = ast.expr | ast.AugAssign


def line_of(where: Where) -> str | None:
    """The text of a line without its line break; None where the source cannot be read, or must not be."""
    text = linecache.getline(where.file, where.line) if where.readable else ""
    return text.rstrip("\r\n") if text else None


def columns_of(where: Where) -> tuple[int, int] | None:
    """First column and the one after the last (1-based) of what `where` points at.

    Where the columns are not known, the expression that its line evaluates is looked up in the file's syntax tree. None
    where the line does more than one thing, or cannot be read: a caret in the wrong place is worse than none.
    """
    text = line_of(where)
    if text is None:
        return None
    if where.column is not None:
        end = where.end_column if where.end_column is not None else len(text) + 1
        return (where.column, min(end, len(text) + 1)) if where.column < end else None
    source = "".join(linecache.getlines(where.file))
    expressions = _expressions_by_line(source).get(where.line, ())
    return _columns(expressions[0], where.line, text) if len(expressions) == 1 else None


def _columns(expression: Evaluated, line: int, text: str) -> tuple[int, int]:
    """Columns of what lies on `line` of an expression. The syntax tree counts bytes; a reader counts letters."""
    encoded = text.encode()
    start = len(encoded[: expression.col_offset].decode(errors="replace"))
    if expression.end_lineno == line:
        return start + 1, len(encoded[: expression.end_col_offset].decode(errors="replace")) + 1
    return start + 1, len(text.rstrip()) + 1


@lru_cache(maxsize=64)
def _expressions_by_line(source: str) -> dict[int, tuple[Evaluated, ...]]:
    """For each line, the outermost expressions that begin on it, where a statement evaluates them."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found: dict[int, list[Evaluated]] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            for expression in _evaluated(statement):
                for line, part in _spread(expression):
                    found.setdefault(line, []).append(part)
    return {line: tuple(parts) for line, parts in found.items()}


def _evaluated(statement: ast.stmt) -> Sequence[Evaluated]:
    """What running the head of a statement evaluates; the statements of its body speak for themselves.

    `a += b` reads and writes `a`, so it is the whole of it.
    """
    match statement:
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return [test]
        case ast.For(iter=iterated):
            return [iterated]
        case ast.With(items=items):
            return [item.context_expr for item in items]
        case ast.AugAssign():
            return [statement]
        case ast.Assign(value=value) | ast.Expr(value=value):
            return [value]
        case ast.Return(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
            return [value]
        case ast.Raise(exc=ast.expr() as raised):
            return [raised]
    return []


def _spread(expression: Evaluated) -> Iterator[tuple[int, Evaluated]]:
    """The expression on its first line, and on each later line the outermost parts of it that begin there."""
    yield expression.lineno, expression
    if expression.end_lineno == expression.lineno:
        return
    for child in _parts(expression):
        if child.lineno == expression.lineno:
            yield from (later for later in _spread(child) if later[0] != expression.lineno)
        else:
            yield from _spread(child)


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """The nearest expressions inside a node, looking through what is not one (keywords, comprehension clauses)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        else:
            yield from _parts(child)
