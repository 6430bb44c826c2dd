"""The user's own lines in another place: comments and formatting stay, only the indentation moves."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from trueport.fix.edit import SourceFile

Replacement = Callable[[ast.AST], str | None]
"""What to write for a node instead of the user's text; None to look into it."""
STEP = "    "


_WIDE = 110


def call_lines(indent: str, head: str, arguments: list[str]) -> list[str]:
    """`head(arguments)`, the arguments on a line of their own where one line would be long."""
    line = f"{indent}{head}({', '.join(arguments)})"
    return [line] if len(line) <= _WIDE else [f"{indent}{head}(", f"{indent}{STEP}{', '.join(arguments)}", f"{indent})"]


class NoPortableForm(Exception):
    """Something that torch's control flow has no form for: the line, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


class UserText:
    """Text of one file by its syntax tree, with parts of it exchanged."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._own = {id(node): node for node in ast.walk(source.tree)}  # kept, so that no new node takes an old id

    def is_users(self, node: ast.AST) -> bool:
        """Whether a node was parsed from the file, and not made by us."""
        return id(node) in self._own

    def expression(self, node: ast.expr, replace: Replacement) -> str:
        given = replace(node)
        if given is not None:
            return given
        if not self.is_users(node):
            return ast.unparse(_with_parts_replaced(node, self, replace))
        return self._spliced(node, *self._source.span(node), replace)

    def statement(self, node: ast.stmt, indent: str, replace: Replacement) -> list[str]:
        """A statement with the comment beside it, at another indentation."""
        if not self.is_users(node):
            return [indent + line for line in ast.unparse(node).splitlines()]
        start, end = self._extent(node)
        text = self._spliced(node, start, end, replace)
        first, *more = text.rstrip().splitlines()
        inside_strings = self._string_lines(node)
        moved = [indent + first]
        for number, line in enumerate(more, start=node.lineno + 1):
            moved.append(line if number in inside_strings else self._moved(line, node.col_offset, indent))
        return moved

    def comments_above(self, node: ast.stmt, indent: str, previous: int) -> list[str]:
        """Comments and empty lines between line `previous` and a statement."""
        if not self.is_users(node):
            return []
        lines = self._source.text.splitlines()[previous : _first_line(node) - 1]
        return [indent + line.strip() if line.strip() else "" for line in lines if _is_aside(line)]

    def _spliced(self, node: ast.AST, start: int, end: int, replace: Replacement) -> str:
        pieces, at = [], start
        for inner in sorted(_replaced(node, replace), key=lambda found: self._source.span(found[0])):
            first, last = self._source.span(inner[0])
            if first >= end:
                break
            pieces += [self._source.text[at:first], inner[1]]
            at = last
        return "".join([*pieces, self._source.text[at:end]])

    def _extent(self, node: ast.stmt) -> tuple[int, int]:
        """From its first letter to the end of the comment beside its last."""
        start, end = self._source.span(node)
        decorators = getattr(node, "decorator_list", [])
        if decorators:
            start = self._source.offset(decorators[0].lineno, node.col_offset)
        rest = self._source.text[end:].split("\n", 1)[0]
        return start, end + len(rest) if rest.strip().startswith("#") else end

    def _moved(self, line: str, column: int, indent: str) -> str:
        if not line.strip():
            return ""
        own = len(line) - len(line.lstrip())
        return indent + line[min(own, column) :]

    def _string_lines(self, node: ast.AST) -> set[int]:
        """Lines that begin inside a string, where white space counts."""
        found: set[int] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant | ast.JoinedStr) and inner.end_lineno is not None:
                found.update(range(inner.lineno + 1, inner.end_lineno + 1))
        return found


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _is_aside(line: str) -> bool:
    return not line.strip() or line.strip().startswith("#")


def _replaced(node: ast.AST, replace: Replacement) -> Iterator[tuple[ast.expr, str]]:
    for child in ast.iter_child_nodes(node):
        text = replace(child) if isinstance(child, ast.expr) else None
        if text is not None:
            assert isinstance(child, ast.expr)
            yield child, text
        else:
            yield from _replaced(child, replace)


def _with_parts_replaced(node: ast.expr, text: UserText, replace: Replacement) -> ast.expr:
    """Made of user's parts by us: each part is written with its own replacements."""

    class Parts(ast.NodeTransformer):
        def visit(self, part: ast.AST) -> ast.AST:
            if isinstance(part, ast.expr) and (text.is_users(part) or replace(part) is not None):
                return ast.parse(text.expression(part, replace), mode="eval").body
            return self.generic_visit(part)

    made = Parts().generic_visit(node)
    assert isinstance(made, ast.expr)
    return made
