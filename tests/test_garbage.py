"""The garbage collector around imports: nothing new to look through, and nothing of the user's changed."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

import trueport
from trueport.garbage import importing


@pytest.fixture
def enabled():
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_what_an_import_makes_is_old_at_once(enabled):
    with importing():
        assert not gc.isenabled()
        made = [[number] for number in range(10_000)]
    assert gc.isenabled()
    assert any(each is made for each in gc.get_objects(generation=2))
    assert not gc.get_freeze_count()


def test_what_the_user_froze_stays_frozen(enabled):
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with importing():
            pass
        assert gc.get_freeze_count() > 0.9 * count
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off(enabled):
    gc.disable()
    with importing():
        pass
    assert not gc.isenabled()


def _hidden():
    """So deep in other things that only the collector finds it."""

    def decides(x):
        return x * 2 if x.sum() > 0 else -x

    held = decides
    for _ in range(12):
        held = {"inner": [held]}
    return held


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = _hidden()

    def forward(self, x):
        held = self.held
        while isinstance(held, dict):
            (held,) = held["inner"]
        return held(x)


def test_a_function_that_the_user_froze_is_found(enabled):
    model = Deep()
    gc.freeze()
    try:
        report = trueport.check(model, (torch.rand(2),))
        assert not report.errors, report.text()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
