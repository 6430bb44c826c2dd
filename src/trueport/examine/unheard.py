"""What a model prints while it is checked: a `print` for debugging would be shown for each of a hundred inputs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

_LOCK = threading.Lock()


class _Unheard:
    """The standard output, for all threads but some. The whole process shares it, so it is put there by the first of
    these threads and taken away by the last: if each put back what it had found, one could be left for good."""

    def __init__(self, heard: Any) -> None:
        self.heard, self.threads = heard, Counter[int]()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() in self.threads else self.heard.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.heard, name)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What this thread writes to the standard output goes nowhere. The example's own runs were heard before."""
    thread = threading.get_ident()
    with _LOCK:
        there: Any = sys.stdout
        output = there if isinstance(there, _Unheard) else _Unheard(there)
        output.threads[thread] += 1
        sys.stdout = output
    try:
        yield
    finally:
        with _LOCK:
            output.threads[thread] -= 1
            output.threads += Counter()  # without those that are at nothing
            if not output.threads and sys.stdout is output:
                sys.stdout = output.heard
