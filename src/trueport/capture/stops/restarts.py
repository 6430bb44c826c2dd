"""What starts a trace again: raised through the user's code, which no `except Exception` of theirs may stop.

Each says why, so that the log of a trace can (`logging.getLogger("trueport.capture")`).
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from trueport.errors import Unwinding
from trueport.source import Place


class Restarting(Unwinding):
    """The trace learned something, and has to start again; `place` is the user's line, where it is known."""

    careful = False
    """Whether the next trace has to see all that is written in place."""
    fickle: frozenset[Any] = frozenset()
    """The tensors whose values the next trace may not rely on."""

    def __init__(self, why: str, place: Place | None = None) -> None:
        super().__init__(why)
        self.why, self.place = why, place


class NeedsRewrite(Restarting):
    """The trace met a decision in a function that is not rewritten yet."""

    place: Place

    def __init__(self, code: CodeType, place: Place, roots: tuple[Any, ...] = ()) -> None:
        """`roots` are objects near which functions that run the code are likely to be found."""
        super().__init__(f"`{code.co_qualname}` decides by a traced value, or handles one: it is rewritten", place)
        self.code, self.roots = code, roots
        self.more: list[NeedsRewrite] = []
        """Other functions that the same trace found, since it went on to look for them."""

    def add(self, other: NeedsRewrite) -> None:
        self.more.append(other)
        others = f"{len(self.more)} more" if len(self.more) > 1 else f"`{other.code.co_qualname}`"
        self.why = f"`{self.code.co_qualname}` and {others} decide by traced values, or handle them: they are rewritten"


class StartsAgain(Restarting):
    """Something was exchanged in the rewritten code: a branch holds the rest of its block, a dict is a table."""


class WritesInPlace(Restarting):
    """The hopeful trace met a write; start again with full functionalisation."""

    careful = True

    def __init__(self) -> None:
        super().__init__("something is written in place: everything is functionalised")
