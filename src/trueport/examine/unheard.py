"""What a model prints while it is checked: a `print` for debugging would be shown for each of a hundred inputs."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any


class _Unheard:
    """The standard output, for all but one thread."""

    def __init__(self, heard: Any) -> None:
        self._heard, self._thread = heard, threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._heard.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heard, name)


def unheard() -> contextlib.AbstractContextManager[Any]:
    """What this thread writes to the standard output goes nowhere. The example's own runs were heard before."""
    return contextlib.redirect_stdout(_Unheard(sys.stdout))
