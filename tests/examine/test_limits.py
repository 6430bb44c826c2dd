"""Eager that does not end is stopped, and what was there before the limit is there after it."""

from __future__ import annotations

import signal

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
