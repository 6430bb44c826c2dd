"""A limit on eager itself: a `while` of the user's may never end on an input that we have drawn."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in what runs meanwhile, once it has taken so long.

    By an alarm signal, which reaches Python between two of its instructions: on the main thread only. Elsewhere there
    is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"eager did not end within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
