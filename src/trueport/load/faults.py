"""How this room says that a request cannot be understood."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.source import Place


def usage_error(message: str, *, fix: str = "", seen: Iterable[str] = (), place: Place | None = None) -> UsageError:
    return UsageError([UsageFault(message=message, fix=fix, seen=tuple(seen), place=place)])


def close_to(word: str, known: Iterable[str]) -> str:
    """A question to the user: what was probably meant, or what there is."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {', '.join(map(repr, names))}" if names else "there is none"
