"""When Python's garbage collector is better left alone."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: a trace makes many small objects and hardly any garbage, and the collector walks
    all of torch for each new generation (a third of the time on a decoder of 24 layers). So does an import."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
