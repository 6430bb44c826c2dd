"""Statements that are run once for each way through a branch inside what they call.

The arms of a branch may part for longer than the block in which the branch stands: one raises and a `try` around it
goes on, or a function returns a tensor in one arm and a pair in the other. Then the statement that called it is run for
each arm. The trace finds out, and asks for it by line:

    try: y = helper(x)                        trueport.forked(block), where the block is the statement,
    except ValueError: y = x           →      and the rest of its block where what it gives is of two kinds
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from trueport.rewrite.build import same_place


@dataclass(frozen=True, order=True)
class Fork:
    """The statement on a line is to be run for each way; with `rest`, what follows it in its block as well."""

    line: int
    rest: bool


def with_forks(statements: list[ast.stmt], forks: Collection[Fork]) -> list[ast.stmt]:
    """A block in which each of these statements stands in a branch of its own, which is marked."""
    if not forks:
        return statements
    out: list[ast.stmt] = []
    for i, statement in enumerate(statements):
        wanted = next((fork for fork in forks if _is_meant(statement, fork)), None)
        _inside(statement, forks)
        if wanted is None:
            out.append(statement)
        elif wanted.rest:
            return [*out, _marked([statement, *with_forks(statements[i + 1 :], forks)])]
        else:
            out.append(_marked([statement]))
    return out


def is_fork(node: ast.stmt) -> bool:
    return hasattr(node, "tp_fork")


def _marked(body: list[ast.stmt]) -> ast.If:
    made = same_place(ast.If(test=ast.Constant(True), body=body, orelse=[]), body[0])
    made.tp_fork = True  # type: ignore[attr-defined]
    return made


def _is_meant(statement: ast.stmt, fork: Fork) -> bool:
    """Whether the line is one of the statement, and not of a block inside it."""
    if not fork.rest:
        return isinstance(statement, (ast.Try, ast.With)) and statement.lineno == fork.line
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.While)):
        return False
    inner = getattr(statement, "body", None)
    last = inner[0].lineno - 1 if isinstance(inner, list) else statement.end_lineno or statement.lineno
    return statement.lineno <= fork.line <= max(last, statement.lineno)


def _inside(statement: ast.stmt, forks: Collection[Fork]) -> None:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list) and block:
            setattr(statement, field, with_forks(block, forks))
    for handler in getattr(statement, "handlers", []):
        handler.body = with_forks(handler.body, forks)
