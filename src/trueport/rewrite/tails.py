"""The rest of a block, moved into both arms of a branch.

Where the arms of a branch leave a name with values that no one value can be (a tensor here, None there; the name of one
layer or of another), what follows has to be traced once for each arm. The trace finds out, and asks for it by line:

    key = "a" if t > 3 else "b"               if t > 3: key = "a"; y = self.heads[key](x)
    y = self.heads[key](x)             →      else:     key = "b"; y = self.heads[key](x)
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from trueport.rewrite.unfolding import unfolded
from trueport.rewrite.walking import copied


def with_tails_inside(statements: list[ast.stmt], lines: Collection[int]) -> list[ast.stmt]:
    """A block in which each branch that is tested on one of these lines holds the rest of the block in both arms.

    So does a branch in whose arms such a one stands: what follows it follows them both.
    """
    if not lines:
        return statements
    for i, statement in enumerate(statements):
        rest = statements[i + 1 :]
        if isinstance(statement, ast.If) and _wants_rest(statement, lines):
            statement.body = with_tails_inside([*statement.body, *(copied(each) for each in rest)], lines)
            statement.orelse = with_tails_inside([*statement.orelse, *rest], lines)
            return [*statements[:i], statement]
        branched = unfolded(statement, lines)
        if branched is not None:
            return [*statements[:i], *with_tails_inside([*branched, *rest], lines)]
        _inside(statement, lines)
    return statements


def _wants_rest(statement: ast.stmt, lines: Collection[int]) -> bool:
    if isinstance(statement, ast.If):
        here = statement.test.lineno in lines or hasattr(statement, "tp_wants_rest")
        return here or any(_wants_rest(each, lines) for each in (*statement.body, *statement.orelse))
    return unfolded(copied(statement), lines) is not None


def _inside(statement: ast.stmt, lines: Collection[int]) -> None:
    if isinstance(statement, ast.ClassDef):
        return
    for field in ("body", "orelse", "finalbody"):
        if getattr(statement, field, None):
            setattr(statement, field, with_tails_inside(getattr(statement, field), lines))
    for handler in getattr(statement, "handlers", []):
        handler.body = with_tails_inside(handler.body, lines)
