"""What starts a trace again: raised through the user's code, which no `except Exception` of theirs may stop."""

from __future__ import annotations

from types import CodeType
from typing import Any

from trueport.errors import Unwinding
from trueport.source import Place


class NeedsRewrite(Unwinding):
    """The trace met a decision in a function that is not rewritten yet. No `except Exception` stops it."""

    def __init__(self, code: CodeType, place: Place, roots: tuple[Any, ...] = ()) -> None:
        """`roots` are objects near which functions that run the code are likely to be found."""
        super().__init__(code.co_qualname)
        self.code, self.place, self.roots = code, place, roots


class NeedsTail(Unwinding):
    """Two arms did not agree on a name that is read afterwards: what follows is to be traced in each arm.

    Or something else was exchanged, and the trace has to start again.
    """

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


class WritesInPlace(Unwinding):
    """The hopeful trace met a write; start again with full functionalisation. No `except Exception` stops it."""
