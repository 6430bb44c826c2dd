"""A line that only prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.syntax import called, imported_as

_PRINTS = frozenset("print info debug warning error log warn write exception critical".split())


class PrintedOnly(Fix):
    """`print(x.mean().numpy())` is put under `if not torch.compiler.is_compiling():`.

    A graph cannot print. Eager still does: trueport, like torch.compile, says that it is compiling while it traces.
    """

    codes = ("TP204", "TP101", "TP104")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        line, torch = case.statement, imported_as(case.source, "torch")
        if not torch or not isinstance(line, ast.Expr) or not isinstance(line.value, ast.Call):
            return
        if called(line.value) not in _PRINTS or _shares_its_line(case, line):
            return
        indent = case.source.indent(line.lineno)
        start, end = case.source.span(line)
        body = case.source.text[start:end]
        if "\n" in body or "\r" in body:
            moved = case.source.newline.join(f"    {part}" if at else part for at, part in enumerate(body.splitlines()))
        else:
            moved = body
        head = f"if not {torch}.compiler.is_compiling():{case.source.newline}{indent}    "
        yield Proposal("print in eager only", (case.source.replace(line, head + moved),))


def _shares_its_line(case: Case, line: ast.stmt) -> bool:
    """Whether another statement begins on the same line: `if c: print(x)`, or `a = 1; print(x)`."""
    others = (node for node in ast.walk(case.source.tree) if isinstance(node, ast.stmt) and node is not line)
    return any(
        node.lineno <= line.lineno <= (node.end_lineno or 0) for node in others if not _holds_a_block(node, line)
    )


def _holds_a_block(node: ast.stmt, line: ast.stmt) -> bool:
    return hasattr(node, "body") and node.lineno < line.lineno
