"""Eager that does not end is stopped, and what was there before the limit is there after it."""

from __future__ import annotations

import signal
import time

import pytest
import torch
from torch import nn

import trueport
from trueport.examine.limits import within


def _forever():
    while True:
        pass


def test_a_loop_that_does_not_end_is_stopped_and_the_alarm_is_as_before():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match="did not end"), within(0.2):
        _forever()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


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
