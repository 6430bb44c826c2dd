"""A limit on eager itself: a `while` of the user's may never end on an input that we have drawn."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_A_MOMENT = 0.01
_MOMENTS = 100


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in what runs meanwhile, once it has taken so long.

    By an alarm signal, which reaches Python between two of its instructions: on the main thread only. Elsewhere there
    is no limit. Not while something is set or restored: a `with` that is stopped half-way in its `__enter__` or
    `__exit__` would leave torch's modes as they are, for the rest of the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limited = sys._getframe(2)  # what says `with within(…)`, behind contextlib's own frame
    moments = itertools.count()

    def stop(_signal: int, frame: FrameType | None) -> None:
        if _sets_or_restores(frame, limited) and next(moments) < _MOMENTS:
            signal.setitimer(signal.ITIMER_REAL, _A_MOMENT)
            return
        raise TimeoutError(f"eager did not end within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _sets_or_restores(frame: FrameType | None, limited: FrameType) -> bool:
    """Whether a `with` is just being entered or left, in what the limit holds for."""
    while frame is not None and frame is not limited:
        if frame.f_code.co_name in ("__enter__", "__exit__"):
            return True
        frame = frame.f_back
    return False
