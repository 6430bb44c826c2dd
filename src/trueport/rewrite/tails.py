"""The rest of a block, moved into both arms of a branch.

Where the arms of a branch leave a name with values that no one value can be (a tensor here, None there; the name of one
layer or of another), what follows has to be traced once for each arm. The trace finds out, and asks for it by line:

    key = "a" if t > 3 else "b"               if t > 3: key = "a"; y = self.heads[key](x)
    y = self.heads[key](x)             →      else:     key = "b"; y = self.heads[key](x)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection

from trueport.rewrite.build import same_place

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def with_tails_inside(statements: list[ast.stmt], lines: Collection[int]) -> list[ast.stmt]:
    """A block in which each branch that is tested on one of these lines holds the rest of the block in both arms."""
    if not lines:
        return statements
    for i, statement in enumerate(statements):
        branch = _as_branch(statement, lines)
        if branch is not None:
            rest = statements[i + 1 :]
            branch.body = with_tails_inside([*branch.body, *copy.deepcopy(rest)], lines)
            branch.orelse = with_tails_inside([*branch.orelse, *rest], lines)
            return [*statements[:i], branch]
        _inside(statement, lines)
    return statements


def _inside(statement: ast.stmt, lines: Collection[int]) -> None:
    if isinstance(statement, _FUNCTIONS):
        return
    for field in ("body", "orelse", "finalbody"):
        if getattr(statement, field, None):
            setattr(statement, field, with_tails_inside(getattr(statement, field), lines))
    for handler in getattr(statement, "handlers", []):
        handler.body = with_tails_inside(handler.body, lines)


def _as_branch(statement: ast.stmt, lines: Collection[int]) -> ast.If | None:
    if isinstance(statement, ast.If):
        return statement if statement.test.lineno in lines else None
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
        for node in ast.walk(statement):
            if isinstance(node, ast.IfExp) and node.lineno in lines:
                return _unfolded(statement, node)
    return None


def _unfolded(statement: ast.stmt, ternary: ast.IfExp) -> ast.If:
    """A statement with a ternary in it, as a branch with the statement in both arms."""
    ternary.tp_unfold = True  # type: ignore[attr-defined]
    arms = []
    for choice in ("body", "orelse"):
        arms.append([_Choosing(choice).visit(copy.deepcopy(statement))])
    return same_place(ast.If(test=ternary.test, body=arms[0], orelse=arms[1]), ternary)


class _Choosing(ast.NodeTransformer):
    def __init__(self, choice: str) -> None:
        self._choice = choice

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if hasattr(node, "tp_unfold"):
            chosen: ast.AST = getattr(node, self._choice)
            return chosen
        self.generic_visit(node)
        return node
