"""Sets that the arms of a branch leave with different items."""

from __future__ import annotations

import pytest

from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive


def added(x):
    seen = set()
    if x.sum() > 0:
        seen.add(3)
    if 3 in seen:
        return x * 2
    return x


def discarded(x):
    left = {1, 2}
    if x.sum() > 0:
        left.discard(2)
    return x * len(left)


def exchanged(x):
    names = {"a"}
    if x.sum() > 0:
        names = names | {"b"}
    y = x + 1 if "b" in names else x
    return y * len(names)


def updated(x):
    numbers = {n for n in (1, 2)}
    if x.sum() > 0:
        numbers.update([5, 6])
    else:
        numbers |= {7}
    for number in sorted(numbers):
        x = x * 0.5 + number
    return x


def never_asked_again(x):
    seen = set()
    if x.sum() > 0:
        seen.add(3)
    return x + 1


@pytest.mark.parametrize(
    "model", [added, discarded, exchanged, updated, never_asked_again], ids=lambda model: model.__name__
)
def test_a_set_that_an_arm_changes(model):
    assert_kept_alive(model, (UP,), [(DOWN,)])
