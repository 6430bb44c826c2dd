"""How long a search, or a run of eager, may take: by the processor's time, so that a busy machine does not find less
than an idle one."""

from __future__ import annotations

import time

_TIMES_THE_CLOCK = 2.0
"""By the clock on the wall it may take so many times as long, and no longer."""


class Allowance:
    """So many seconds, from now on, of the thread that asks."""

    def __init__(self, seconds: float) -> None:
        self._worked = time.thread_time() + seconds
        self._passed = time.monotonic() + _TIMES_THE_CLOCK * seconds

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self._worked or time.monotonic() > self._passed
