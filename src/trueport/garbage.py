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


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """No garbage collection during an import, nor of what it made right after it (a tenth of the first export).

    What an import makes, stays. So it is put with the old objects at once, unseen, and not looked through as new. What
    the user has frozen stays frozen: then nothing is moved.
    """
    with uncollected():
        yield
        if not gc.get_freeze_count():
            gc.freeze()  # all that there is, into a generation of its own, without a look at it
            gc.unfreeze()  # and from there into the oldest


@contextlib.contextmanager
def thawed() -> Iterator[None]:
    """The collector shows what the user has put aside by `gc.freeze()`, which is put aside again at the end.

    Only the collector knows all functions that run a code (`rewrite/finding.py`), and it does not show frozen ones.
    """
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:
        gc.unfreeze()
    try:
        yield
    finally:
        if is_frozen:
            gc.collect()  # the garbage of a trace is not put aside with the rest
            gc.freeze()
