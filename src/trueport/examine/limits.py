"""A limit on eager itself: a `while` of the user's may never end on an input that we have drawn.

No timer of the process is used: there is one only, and it may be the caller's (pytest-timeout lives by it). A thread
waits instead, and then interrupts the one that is limited: the main thread by a signal whose handler sees what it would
interrupt, any other by an exception that Python raises there. Either comes between two of Python's instructions; code
in C that never returns is not stopped.
"""

from __future__ import annotations

import _weakrefset
import contextlib
import ctypes
import math
import os
import signal
import sys
import threading
import time
import weakref
from types import FrameType, TracebackType
from typing import Any

import torch.utils.weak

_A_MOMENT = 0.01
_MOMENTS = 100
_AGAIN = 1.0
"""Seconds until what went on all the same (it caught the exception) is interrupted once more."""
_IDLE = 0.5
"""Seconds that the waiting thread stays when there is nothing to wait for."""
_SIGNAL = signal.SIGURG
"""Ignored by default and used by hardly anybody; a handler that is there is called for what is not ours."""
_CALLBACKS = frozenset(str(module.__file__) for module in (weakref, _weakrefset, torch.utils.weak))
"""Files whose code runs when an object dies, in the middle of anything. What is raised there is lost."""


class within:
    """Raises TimeoutError in what runs meanwhile on this thread, once it has taken so many seconds.

    Not while something is set or restored: a `with` that is stopped half-way in its `__enter__` or `__exit__` would
    leave torch's modes as they are, for the rest of the process. Nor in the callback of a weak reference.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._strikes, self._struck, self._moments = 0, 0, 0
        self._raised = self._was_struck = self._is_over = False
        self._before: Any = None
        self.due = math.inf
        """When to look at it again, by the monotonic clock."""

    def __enter__(self) -> None:
        self._limited = sys._getframe(1)
        self._thread = threading.get_ident()
        self._by_signal = threading.current_thread() is threading.main_thread()
        if self._by_signal:
            self._before = signal.signal(_SIGNAL, self._handle)
        self.due = time.monotonic() + self._seconds
        _watchdog.add(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over = True
        _watchdog.remove(self)
        if self._by_signal:
            while self._struck < self._strikes:  # on its way: nobody else is to get it
                time.sleep(0.001)
            signal.signal(_SIGNAL, self._before)
        elif self._was_struck:
            _take_back()
        del self._limited

    def strike(self) -> None:
        """Its time is over. Called by the watchdog, again and again until it has left."""
        pause = _A_MOMENT
        if self._raised:
            self._raised, pause = False, _AGAIN
        elif not self._by_signal:
            frame = sys._current_frames().get(self._thread)
            # Not in the `with` itself, which may be about to leave.
            if frame is not self._limited and not self._is_to_wait(frame):
                self._raised = self._was_struck = True
                _raise_in(self._thread, TimeoutError)
        elif self._struck == self._strikes:
            self._strikes += 1
            signal.pthread_kill(self._thread, _SIGNAL)
        self.due = time.monotonic() + pause

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._struck == self._strikes:  # not from us
            if callable(self._before):
                self._before(number, frame)
            return
        self._struck += 1
        if not self._is_over and not self._is_to_wait(frame):
            self._raised = True
            raise TimeoutError(f"eager did not end within {self._seconds:.0f} s")

    def _is_to_wait(self, frame: FrameType | None) -> bool:
        """Whether now is no time to be interrupted; but nobody may go on like that for ever."""
        if self._moments < _MOMENTS and _sets_or_restores(frame, self._limited):
            self._moments += 1
            return True
        self._moments = 0
        return False


class _Watchdog:
    """The one thread that waits for all limits of the process: a thread for each run of a small model would take longer
    than the run. It ends when there has been nothing to wait for, and is started again when there is."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._limits: set[within] = set()
        self._wakes = math.inf
        self._runs = False

    def add(self, limit: within) -> None:
        with self._changed:
            self._limits.add(limit)
            if not self._runs:
                threading.Thread(target=self._wait, name="trueport-limit", daemon=True).start()
                self._runs = True
            elif limit.due < self._wakes:
                self._changed.notify()

    def remove(self, limit: within) -> None:
        """Once this is done, nothing strikes any more."""
        with self._changed:
            self._limits.discard(limit)

    def _wait(self) -> None:
        with self._changed:
            idle = False
            while self._limits or not idle:
                now = time.monotonic()
                for limit in [each for each in self._limits if each.due <= now]:
                    limit.strike()
                idle = not self._limits
                self._wakes = min((each.due for each in self._limits), default=now + _IDLE)
                self._changed.wait(max(self._wakes - time.monotonic(), 0.0))
            self._runs = False


_watchdog = _Watchdog()


def _forget_after_fork() -> None:
    """The thread stays with the parent."""
    global _watchdog
    _watchdog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _sets_or_restores(frame: FrameType | None, limited: FrameType) -> bool:
    """Whether a `with` is just being entered or left, or an object dies, in what the limit holds for."""
    while frame is not None and frame is not limited:
        code = frame.f_code
        if code.co_name in ("__enter__", "__exit__", "__del__") or code.co_filename in _CALLBACKS:
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have an exception raised in a thread, soon, instead of one that it has not got yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class _TakenBack(BaseException):
    """What is raised instead of an exception that came too late."""


def _take_back() -> None:
    """Nothing that was to be raised in this thread is raised after this.

    Python could be told to raise nothing. But then it goes on looking for something to raise: CPython 3.11 does so at
    every call for the rest of the process, and never gets past the first call under `sys.settrace`.
    """
    with contextlib.suppress(_TakenBack):
        _raise_in(threading.get_ident(), _TakenBack)
        while True:
            time.sleep(0)
