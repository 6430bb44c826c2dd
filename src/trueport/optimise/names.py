"""The names of the passes, and which of them a user asks for. Light: the help of the command line shows them."""

from __future__ import annotations

from collections.abc import Sequence

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.spelling import NO_PASSES, told
from trueport.errors import UsageError

NAMES = (
    "constants",
    "fold",
    "branches",
    "identities",
    "moves",
    "shapes",
    "common",
    "norms",
    "gelu",
    "heads",
    "products",
    "rotary",
    "loop_invariants",
    "conv_batch_norm",
    "slow_fusions",
    "dead_code",
)
"""In the order in which they run. `sequence.py` has the classes; a test holds the two together."""

Asked = bool | str | Sequence[str]
"""What `optimize=` takes."""


def chosen(asked: Asked) -> tuple[str, ...]:
    """True: all; False: none; `"fold,moves"`: these two; `"-fold"`: all but this one. Raises UsageError."""
    if isinstance(asked, bool):
        return NAMES if asked else ()
    if not isinstance(asked, str | Sequence) or not all(isinstance(word, str) for word in asked):
        raise _fault(f"optimize={asked!r} is neither a bool nor names of passes")
    words = [word.strip() for word in (asked.split(",") if isinstance(asked, str) else asked) if word.strip()]
    for word in words:
        if word.removeprefix("-") not in NAMES:
            raise _fault(f"there is no pass {word.removeprefix('-')!r}")
    if not words:
        raise _fault("no pass is named")
    without = {word[1:] for word in words if word.startswith("-")}
    only = {word for word in words if not word.startswith("-")} or set(NAMES)
    return tuple(name for name in NAMES if name in only - without)


def _fault(message: str) -> UsageError:
    fix = told(f"name some of {', '.join(NAMES)}; `-fold` is all but fold, and ", NO_PASSES, " none")
    return UsageError([UsageFault(message=message, fix=fix)])
