"""A model that is meant to draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal


class RandomStays(Fix):
    """`--random onnx`: noise that is part of the model stays random in the exported one, and is compared as such.

    Dropout is another matter (it is switched off in eval()), and is answered before this by the order of the names.
    """

    codes = ("TP004",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if not case.command.given("random"):
            yield Proposal("keep it random: --random onnx", command=case.command.with_option("random", "onnx"))
