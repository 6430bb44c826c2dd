"""New text in place of the functions of a loaded model, for as long as it is tried.

The file is not written, and nothing is imported a second time: the model, its weights and all that it holds stay as
they are, and only the code of the functions that the edits touch is exchanged.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

from trueport.fix.edit import Edit, SourceFile
from trueport.rewrite.finding import everywhere
from trueport.rewrite.functions import compile_in_place, give, with_replaced

_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Definition:
    """A function in a file, and the classes around it."""

    node: ast.FunctionDef
    classes: list[str]


def definition(tree: ast.Module, code: CodeType, original: ast.Module | None = None) -> Definition | None:
    """The function that `code` was compiled from. In a tree whose lines moved, found by the order of its namesakes."""
    path = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    found = list(_search(tree.body, path, []))
    if original is None:
        at = [d for d in found if code.co_firstlineno == _first_line(d.node)]
        return at[0] if at else None
    before = list(_search(original.body, path, []))
    places = [k for k, d in enumerate(before) if code.co_firstlineno == _first_line(d.node)]
    return found[places[0]] if places and len(found) == len(before) else None


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _search(statements: Sequence[ast.stmt], path: list[str], classes: list[str]) -> Iterator[Definition]:
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            if statement.name != path[0]:
                continue
            is_class = isinstance(statement, ast.ClassDef)
            if len(path) > 1:
                yield from _search(statement.body, path[1:], [*classes, statement.name] if is_class else classes)
            elif isinstance(statement, ast.FunctionDef):
                yield Definition(statement, classes)
        else:
            for block in _BLOCKS:
                yield from _search(getattr(statement, block, []), path, classes)


@contextlib.contextmanager
def exchanged(before: SourceFile, after: SourceFile, codes: Sequence[CodeType]) -> Iterator[None]:
    """The functions that run those of the `codes` that are of the file `before` run those of `after` meanwhile."""
    originals: list[tuple[FunctionType, CodeType]] = []
    added: list[tuple[FunctionType, str]] = []
    names = _imported(after.tree)
    try:
        for code in (code for code in codes if Path(code.co_filename).resolve() == before.path):
            found = definition(after.tree, code, before.tree)
            assert found is not None, f"{code.co_qualname} is no longer where it was"
            new = compile_in_place(found.node, code, found.classes)
            for function in everywhere(code.co_filename):
                changed = with_replaced(function.__code__, code, new)
                if changed is not function.__code__:
                    originals.append((function, function.__code__))
                    give(function, changed)
                    for name in names.keys() - function.__globals__.keys():
                        function.__globals__[name] = names[name]
                        added.append((function, name))
        yield
    finally:
        for function, code in reversed(originals):
            give(function, code)
        for function, name in added:
            function.__globals__.pop(name, None)


_OURS = {"torch": "import torch", "scan": "from torch._higher_order_ops import scan"}


def _imported(tree: ast.Module) -> dict[str, object]:
    """What the imports that we add to a file give it."""
    written = {ast.unparse(statement) for statement in tree.body}
    given: dict[str, object] = {}
    for name, statement in _OURS.items():
        if statement in written:
            module = importlib.import_module("torch" if name == "torch" else "torch._higher_order_ops")
            given[name] = module if name == "torch" else getattr(module, name)
    return given


def import_edits(source: SourceFile, wanted: set[str]) -> list[Edit]:
    """The imports that the new code needs and the file does not have, behind its last one."""
    written = {ast.unparse(s) for s in source.tree.body}
    torch_known = any(
        "torch" in (a.asname or a.name for a in s.names) for s in source.tree.body if isinstance(s, ast.Import)
    )
    missing = sorted(statement for statement in wanted if statement not in written)
    if not torch_known:
        missing = [_OURS["torch"], *missing]
    if not missing:
        return []
    tops = [s for s in source.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    docstring = source.tree.body[:1] if ast.get_docstring(source.tree) is not None else []
    last = (tops or docstring or [None])[-1]
    offset = source.line_start((last.end_lineno or last.lineno) + 1) if last is not None else 0
    text = "".join(f"{statement}{source.newline}" for statement in missing)
    return [source.insert(offset, text)]
