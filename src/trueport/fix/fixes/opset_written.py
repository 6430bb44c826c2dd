"""An opset that is not written."""

from __future__ import annotations

from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal


class OpsetWritten(Fix):
    """`--opset 18`: the nearest opset that is written and has all of the model, where another one was asked for."""

    codes = ("TP601",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        nearest = case.facts.get("opset")
        if nearest:
            command = case.command.with_option("opset", int(nearest)).with_option("runtime", None)
            yield Proposal(f"ask for --opset {nearest}", command=command)
