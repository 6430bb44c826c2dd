"""A model that is handed over in training mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.syntax import atom


class EvalMode(Fix):
    """`return model` becomes `return model.eval()` in the function that makes the model; `model = Net()` likewise.

    Where the command names a class, trueport calls `eval()` by itself; what a function or a file hands over is taken as
    it is.
    """

    codes = ("TP003",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if case.target is None:
            return
        source = case.read(Path(case.target.file).resolve())
        name = case.command.target.rpartition(":")[2].partition(".")[0]
        made: list[ast.expr] = []
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                made += [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
            elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                made = [node.value]
        if made:
            edits = tuple(source.replace(value, f"{atom(source, value)}.eval()") for value in made)
            yield Proposal("hand it over in eval()", edits, changes="the model is used as in inference")
