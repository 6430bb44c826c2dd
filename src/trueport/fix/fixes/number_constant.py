"""A number argument that decides what runs."""

from __future__ import annotations

from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal


class NumberConstant(Fix):
    """`--constants axis`: the number is fixed in the model, instead of being an input that cannot be kept open.

    No edit of the source can do this: whether the number ever changes is known to the caller only.
    """

    codes = ("TP205",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        name = case.facts.get("number")
        if name:
            yield Proposal(
                f"fix its value: --constants {name}, if it is the same in production",
                command=case.command.with_constant(name),
            )
