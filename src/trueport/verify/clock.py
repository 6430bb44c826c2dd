"""How long a search, or a run of eager, may take: by the processor's time, so that a busy machine does not find less
than an idle one."""

from __future__ import annotations

import time

_TIMES_THE_CLOCK = 4.0
"""By the clock on the wall it may take so many times as long, and no longer."""


class Allowance:
    """So many seconds, from now on, of the thread that asks."""

    def __init__(self, seconds: float) -> None:
        self._worked = time.thread_time() + seconds
        self._passed = time.monotonic() + _TIMES_THE_CLOCK * seconds

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self._worked or time.monotonic() > self._passed


class Stopwatch:
    """The seconds since it was started in which this thread worked, or waited for the runtime to answer."""

    def __init__(self) -> None:
        self._worked, self._passed = time.thread_time(), time.monotonic()
        self.waited = 0.0

    @property
    def seconds(self) -> float:
        passed = time.monotonic() - self._passed
        spent = time.thread_time() - self._worked + self.waited
        return min(passed, max(spent, passed / _TIMES_THE_CLOCK))
