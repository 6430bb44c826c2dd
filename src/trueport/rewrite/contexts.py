"""`with` of a `@contextmanager` whose generator decides: the generator calls the block (see generators.py).

    with scaled(x) as y:                    def tp_body(tp_item): nonlocal …; y = tp_item; B
        B                        →          runtime.with_(scaled(x), tp_body)

The block then stands where the generator yields: in its branch, in its `try`, before what it does behind the `yield`.
The trace finds out, and asks for it by line; any other `with` stays what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from trueport.rewrite.build import name, runtime, same_place
from trueport.rewrite.rewrite_context import RewriteContext

_ITEM = "tp_item"


@dataclass(frozen=True, order=True)
class Called:
    """The `with` that enters something on this line hands its block over."""

    line: int


def with_called(statements: list[ast.stmt], wanted: Collection[Called]) -> list[ast.stmt]:
    """A block in which those `with` statements are marked, each with a single manager."""
    lines = {each.line for each in wanted}
    return [_marked(statement, lines) for statement in statements] if lines else statements


def _marked(statement: ast.stmt, lines: Collection[int]) -> ast.stmt:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list):
            setattr(statement, field, [_marked(each, lines) for each in block])
    for handler in getattr(statement, "handlers", []):
        handler.body = [_marked(each, lines) for each in handler.body]
    if not isinstance(statement, ast.With) or not any(item.context_expr.lineno in lines for item in statement.items):
        return statement
    body = statement.body
    for item in reversed(statement.items):
        made = same_place(ast.With(items=[item], body=body), item.context_expr)
        if item.context_expr.lineno in lines:
            made.tp_called = True  # type: ignore[attr-defined]
        body = [made]
    return body[0]


def rewrite_with(rewriter: RewriteContext, node: ast.With) -> ast.stmt | list[ast.stmt]:
    if not hasattr(node, "tp_called"):
        rewriter.generic_visit(node)
        return node
    target, manager = node.items[0].optional_vars, node.items[0].context_expr
    take = [same_place(ast.Assign(targets=[target], value=name(_ITEM)), target)] if target is not None else []
    bound = rewriter.scope.bound_by([*take, *node.body])
    entered = rewriter.visit(manager)
    body, body_name = rewriter.scope.block("body", [_ITEM], bound, [*take, *rewriter.block(node.body)], node)
    return [body, same_place(ast.Expr(value=runtime("with_", entered, name(body_name))), manager)]
