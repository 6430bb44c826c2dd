"""Eager that does not end is stopped, and what was there before the limit is there after it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest
import torch
from torch import nn

import trueport
from trueport.examine.limits import within


def _forever():
    while True:
        pass


def test_a_loop_that_does_not_end_is_stopped_and_no_handler_is_left():
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    threads = threading.active_count()
    with pytest.raises(TimeoutError, match="did not end"), within(0.2):
        _forever()
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before
    others = [thread for thread in threading.enumerate() if thread.name != "trueport-limit"]
    assert len(others) <= threads
    for thread in set(threading.enumerate()).difference(others):
        thread.join(10)  # it ends by itself when nothing is limited any more
        assert not thread.is_alive()


def test_a_pending_alarm_of_the_caller_stays_and_comes():
    """pytest-timeout is one; it saw its alarm cancelled by every export."""
    came = []
    before = signal.signal(signal.SIGALRM, lambda *_: came.append(True))
    signal.setitimer(signal.ITIMER_REAL, 100, 7)
    try:
        with within(100):
            pass
        with pytest.raises(TimeoutError), within(0.1):
            _forever()
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left <= 100 and interval == 7
        with within(100):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while not came:
                time.sleep(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_alarm_of_the_caller_outlives_an_export():
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        trueport.export(nn.ReLU(), (torch.randn(3),))
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_of_the_caller_reaches_its_handler():
    came = []
    before = signal.signal(signal.SIGURG, lambda *_: came.append(True))
    try:
        with within(100):
            signal.raise_signal(signal.SIGURG)
        assert came == [True]
    finally:
        signal.signal(signal.SIGURG, before)


def test_one_limit_within_another():
    with pytest.raises(TimeoutError), within(0.1), within(100):
        _forever()
    with pytest.raises(TimeoutError), within(100), within(0.1):
        _forever()


def test_what_sleeps_is_woken():
    with pytest.raises(TimeoutError), within(0.1):
        time.sleep(1000)


def test_the_limit_holds_on_any_thread():
    found = []

    def limited():
        try:
            with within(0.1):
                _forever()
        except TimeoutError as late:
            found.append(late)

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join()
    assert len(found) == 1


_AFTERWARDS = """
import sys, threading
from trueport.examine.limits import within

def forever():
    while True:
        pass

def limited():
    try:
        with within(0.05):
            forever()
    except TimeoutError:
        pass
    with within(10):
        pass

thread = threading.Thread(target=limited)
thread.start()
thread.join()

def entered():
    return "entered"

sys.settrace(lambda frame, event, arg: None)
print(entered())
"""


def test_python_runs_on_under_a_debugger_after_a_limit_on_another_thread():
    """CPython 3.11 stood still for ever at the next call that was traced."""
    done = subprocess.run([sys.executable, "-c", _AFTERWARDS], capture_output=True, text=True, timeout=120)
    assert done.stdout == "entered\n", done.stderr


class _Key:
    pass


def _let_keys_die(dead):
    keys = weakref.WeakKeyDictionary()
    while True:
        keys[_Key()] = weakref.finalize(_Key(), dead.append, 1)
        assert not keys


def test_the_limit_does_not_strike_in_the_callback_of_a_weak_reference(monkeypatch):
    """What is raised there is lost, and the callback does half of its work."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: lost.append(found.exc_value))
    for _ in range(10):
        with pytest.raises(TimeoutError), within(0.02):
            _let_keys_die([])
    assert not lost


class _Slow:
    """Restores in its `__exit__`, and takes longer than the limit for it."""

    restored = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        self.restored = True


def _slow_and_then_forever(slow):
    with slow:
        pass
    _forever()


def test_what_is_being_restored_is_restored_before_the_limit_strikes():
    slow = _Slow()
    with pytest.raises(TimeoutError, match="did not end"), within(0.1):
        _slow_and_then_forever(slow)
    assert slow.restored


class _Endless:
    def __enter__(self):
        _forever()

    def __exit__(self, *_):
        pass


def test_a_with_that_is_never_entered_is_stopped_all_the_same():
    with pytest.raises(TimeoutError, match="did not end"), within(0.1), _Endless():
        pass


class Root(nn.Module):
    """Newton's method ends for positive numbers only."""

    def forward(self, x):
        y = x.abs() + 1
        while (y * y - x).abs().max() > 1e-3:
            y = 0.5 * (y + x / y)
        return y


def test_a_model_whose_loop_ends_on_few_inputs_is_exported():
    program = trueport.export(Root(), (torch.rand(3) + 1,))
    assert program.report.ok
    assert len(program.report.checks) > 1
