"""A size for which the runtime has no kernel: none at all."""

from __future__ import annotations

from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal


class NeverEmpty(Fix):
    """`--dim N=1..`: the size is declared never to be 0, where the runtime refuses an empty input.

    The model is right for every size that the runtime runs, so nothing in the source is to be changed.
    """

    codes = ("TP802", "TP807")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        name = case.facts.get("empty")
        if not name:
            return
        high = next((text.partition("..")[2] for text in case.command.dims if text.startswith(f"{name}=")), "")
        yield Proposal(
            f"declare that it is never empty: --dim {name}=1..{high}",
            command=case.command.with_range(name, 1, int(high) if high.strip() else None),
        )
