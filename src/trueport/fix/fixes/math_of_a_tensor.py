"""A function of `math` that is given a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import dotted, imported_as

_ALIKE = frozenset({"frexp"})
"""What asks a tensor for its number; the other functions of `math` are kept in the graph as they are."""


class MathOfATensor(Fix):
    """`math.frexp(x.sum())` becomes `torch.frexp(x.sum())`: `math` asks the tensor for its number, torch does not."""

    codes = ("TP101", "TP204")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        math, torch = imported_as(case.source, "math"), imported_as(case.source, "torch")
        if not math or not torch:
            return
        edits: list[Edit] = []
        for call in case.on_the_line(ast.Call):
            head, _, name = dotted(call.func).rpartition(".")
            if head == math and name in _ALIKE and not isinstance(call.args[0], ast.Constant):
                edits.append(case.source.replace(call.func, f"{torch}.{name}"))
        if edits:
            yield Proposal(f"use torch's own: {edits[0].text}", tuple(edits))
