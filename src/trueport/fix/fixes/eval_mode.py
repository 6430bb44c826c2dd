"""A model that is handed over in training mode."""

from __future__ import annotations

from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.handed_over import in_eval


class EvalMode(Fix):
    """`return model` becomes `return model.eval()` in the function that makes the model; `model = Net()` likewise.

    Where the command names a class, trueport calls `eval()` by itself; what a function or a file hands over is taken as
    it is.
    """

    codes = ("TP003", "TP004")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        edits = in_eval(case)
        if edits:
            yield Proposal("hand it over in eval()", edits, changes="the model is used as in inference")
