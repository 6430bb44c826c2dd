"""Which names a block needs before it, and which of those that it binds somebody reads after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from trueport.rewrite.names import bound_names, read_names

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def needed(statements: Sequence[ast.stmt], after: Iterable[str] = ()) -> set[str]:
    """The names whose values before the statements matter, where those of `after` matter behind them."""
    live = set(after)
    for statement in reversed(statements):
        live = _before(statement, live)
    return live


def _before(statement: ast.stmt, after: set[str]) -> set[str]:
    match statement:
        case ast.Return() | ast.Raise():
            return set(read_names([statement]))
        case ast.If(test=test, body=body, orelse=orelse):
            return set(read_names([test])) | needed(body, after) | needed(orelse, after)
        case ast.With(items=items, body=body):
            return set(read_names(items)) | needed(body, after)
        case ast.For() | ast.AsyncFor() | ast.While():
            # The body may run not at all: what it binds is needed as it was before.
            return set(read_names([statement])) | after
        case ast.Assign() | ast.AnnAssign() | ast.FunctionDef() | ast.Expr() | ast.AugAssign() | ast.Import():
            return (after - set(_surely_bound(statement))) | set(read_names([statement]))
        case _:
            return set(read_names([statement])) | after


def _surely_bound(statement: ast.stmt) -> list[str]:
    """What a simple statement binds whenever it runs; a walrus may stand behind an `and`."""
    if isinstance(statement, ast.Expr) or (isinstance(statement, ast.AnnAssign) and statement.value is None):
        return []
    walrus = {node.target.id for node in ast.walk(statement) if isinstance(node, ast.NamedExpr)}
    return [name for name in bound_names([statement]) if name not in walrus]


def written_in_place(statements: Sequence[ast.stmt]) -> list[str]:
    """Names whose tensor the statements write to: `y[i] = v`, `y[i] += v`, `y.add_(v)`."""
    found: dict[str, None] = {}
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base: ast.expr = node
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                found[base.id] = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called, owner = node.func.attr, node.func.value
            if called.endswith("_") and not called.endswith("__") and isinstance(owner, ast.Name):
                found[owner.id] = None
    return list(found)


def changed(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that are other after the statements, bound anew or written to."""
    return list(dict.fromkeys([*bound_names(statements), *written_in_place(statements)]))
