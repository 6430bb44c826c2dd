"""The garbage collector around imports: nothing new to look through, and nothing of the user's changed."""

from __future__ import annotations

import gc

import pytest

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
