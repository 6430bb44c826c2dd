"""A loop over a tuple or a list that was made only to be counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal


class RangeOfACount(Fix):
    """`for _ in (None,) * n:` becomes `for _ in range(n):`, which is kept as a `Loop` where a tensor decides on `n`.

    Only where the item of the list is not used in the loop: the count is all that the list was for.
    """

    codes = ("TP102", "TP101", "TP104", "TP204")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        loop = case.statement
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.BinOp):
            return
        sides = (loop.iter.left, loop.iter.right)
        lists = [side for side in sides if isinstance(side, ast.List | ast.Tuple) and len(side.elts) == 1]
        counts = [side for side in sides if side not in lists]
        if not isinstance(loop.iter.op, ast.Mult) or not lists or not counts or _is_used(loop):
            return
        text = f"range({case.source.text_of(counts[0])})"
        yield Proposal(f"loop over {text}", (case.source.replace(loop.iter, text),))


def _is_used(loop: ast.For) -> bool:
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return any(isinstance(node, ast.Name) and node.id in names for part in loop.body for node in ast.walk(part))
