"""How this room says that a request cannot be understood."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.source import Place


def usage_error(message: str, *, fix: str = "", seen: Iterable[str] = (), place: Place | None = None) -> UsageError:
    return UsageError([UsageFault(message=message, fix=fix, seen=tuple(seen), place=place)])


def refuse_checking(seed: object, *tolerances: object) -> None:
    """Numbers with which a check would mean nothing: no difference is larger than NaN, or than infinity."""
    if not isinstance(seed, int) or not -(1 << 63) <= seed < 1 << 64:
        raise usage_error(f"seed={seed!r} is no seed", fix="give a whole number of 64 bits")
    for allowed in tolerances:
        for number in allowed.values() if isinstance(allowed, Mapping) else () if allowed is None else (allowed,):
            if not isinstance(number, numbers.Real) or not 0 <= float(number) < math.inf:
                raise usage_error(f"{number!r} is no tolerance", fix="give a number that is not negative: 1e-3")


def is_text(name: str) -> bool:
    """Whether a name can be written down: one that came from bytes that are no UTF-8 holds lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def close_to(word: str, known: Iterable[str]) -> str:
    """A question to the user: what was probably meant, or what there is."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {', '.join(map(repr, names))}" if names else "there is none"
