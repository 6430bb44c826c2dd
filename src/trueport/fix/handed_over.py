"""Where the model that the command names is made and handed over."""

from __future__ import annotations

import ast
from pathlib import Path

from trueport.fix.case import Case
from trueport.fix.edit import Edit
from trueport.fix.syntax import atom


def in_eval(case: Case) -> tuple[Edit, ...]:
    """`.eval()` on what the named function returns, or on what the named variable is; none where there is no such."""
    if case.target is None:
        return ()
    source = case.read(Path(case.target.file).resolve())
    name = case.command.target.rpartition(":")[2].partition(".")[0]
    made: list[ast.expr] = []
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            made += [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            made = [node.value]
    already = {value for value in made if source.text_of(value).endswith(".eval()")}
    return tuple(source.replace(value, f"{atom(source, value)}.eval()") for value in made if value not in already)
