"""A size that was declared free, and is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.syntax import dotted


class SizeAsItIs(Fix):
    """`-i x:Nx3` becomes `-i x:2x3` where eager takes no other size: a table of that length, `first, second = x`.

    The last resort, after every edit that would set the size free: the model is asked for what it can do.
    """

    codes = ("TP301", "TP104", "TP809")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        size, value = case.facts.get("size"), case.facts.get("value")
        if size is None:
            size, value = _taken_apart(case)
        if size is None or value is None:
            return
        fixed = case.command.with_fixed_size(size, int(value))
        if fixed.inputs != case.command.inputs:
            named = " ".join(f"-i {text}" for text in fixed.inputs)
            yield Proposal(
                f"declare the size as it is: {named}",
                command=fixed,
                changes=f"`{size}` is {value} in the exported model, which takes no other size",
            )


def _taken_apart(case: Case) -> tuple[str | None, str | None]:
    """`first, second = x`, where the first axis of `x` is a free size."""
    line = case.statement
    if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Tuple):
        return None, None
    count = len(line.targets[0].elts)
    runs = case.scene.sizes_at((case.where.file, case.where.line))
    for node in ast.walk(line.value):
        lengths = [each.shape[0] for each in case.names.get(dotted(node), ()) if each.shape]
        for size in runs[0] if runs and lengths else ():
            if lengths == [run[size] for run in runs]:
                return size, str(count)
    return None, None
