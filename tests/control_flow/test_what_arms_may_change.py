"""What an arm or a round changes besides names: it is undone for the other arm, and merged, wherever it is kept."""

from __future__ import annotations

from collections import ChainMap, UserDict
from contextlib import ExitStack

import numpy as np
import pytest

import trueport
from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive, refused


def default_of_a_function(x):
    def collected(value, into=[]):
        into.append(value)
        return sum(into)

    if x.sum() > 0:
        collected(x)
    return collected(x * 2)


def attribute_of_a_function(x):
    def counted(value):
        counted.calls += 1
        return value * counted.calls

    counted.calls = 0
    if x.sum() > 0:
        x = counted(x)
    return counted(x)


class Counted:
    calls = 0

    @classmethod
    def call(cls):
        cls.calls += 1
        return cls.calls


def attribute_of_a_class(x):
    Counted.calls = 0
    if x.sum() > 0:
        Counted.call()
    return x * Counted.call()


class Settings:
    def __init__(self):
        self.scale = 1.0


SETTINGS = Settings()


def object_at_the_top_of_a_module(x):
    SETTINGS.scale = 1.0
    if x.sum() > 0:
        SETTINGS.scale = 5.0
    return x * SETTINGS.scale


def user_dict(x):
    held = UserDict(a=x)
    if x.sum() > 0:
        held["a"] = x * 2
    return held["a"]


def chain_map(x):
    held = ChainMap({"a": x}, {"b": x})
    if x.sum() > 0:
        held["a"] = x * 2
    return held["a"] + held["b"]


@pytest.mark.parametrize(
    "model",
    [
        default_of_a_function,
        attribute_of_a_function,
        attribute_of_a_class,
        object_at_the_top_of_a_module,
        user_dict,
        chain_map,
    ],
)
def test_what_an_arm_changes_is_its_own(model):
    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_after_the_export_nothing_of_the_trace_is_left():
    """What eager runs left there, as the model is written, is."""
    Counted.calls, SETTINGS.scale = 7, 3.0

    def model(x):
        Counted.call()
        if x.sum() > 0:
            SETTINGS.scale = x.sum().item()
        return x * SETTINGS.scale

    trueport.export(model, (UP,), verify=False)
    assert type(SETTINGS.scale) is float and SETTINGS.scale == UP.sum().item()
    left = Counted.calls
    model(UP)
    assert type(left) is int and Counted.calls == left + 1


def test_what_an_exit_stack_does_at_its_end():
    """Its functions are called behind the block, where no branch is: those of one arm would be called on both."""

    def model(x):
        held = [x]
        with ExitStack() as stack:
            if x.sum() > 0:  # <- here
                stack.callback(held.append, x * 2)
        return sum(held)

    found = refused(model, (UP,))
    assert found.code == "TP103"
    assert "ExitStack" in found.message


def test_an_attribute_of_one_arm_that_a_try_asks_for():
    def model(x):
        settings = Settings()
        if x.sum() > 0:
            settings.offset = x * 2
        try:
            y = settings.offset
        except AttributeError:
            y = x - 1
        return y

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_name_of_one_arm_that_a_try_asks_for_is_refused():
    """In a graph it is there on both ways; nothing would be raised."""

    def model(x):
        if x.sum() > 0:  # <- here
            found = x * 2
        try:
            y = found + 1
        except NameError:
            y = x - 1
        return y

    found = refused(model, (UP,))
    assert found.code == "TP103"
    assert found.where.line == model.__code__.co_firstlineno + 1
    assert "not set" in found.message
    assert "before the branch" in found.fix


def test_a_number_that_numpy_holds_is_refused():
    def model(x):
        scale = np.float64(x.sum().item())
        return x * scale  # <- here

    found = refused(model, (UP,))
    assert found.code == "TP204"
    assert "numpy" in found.message
    assert "float(v)" in found.fix


class Box:
    def __init__(self, held, count=1):
        self.held, self.count = held, count


class Slotted:
    __slots__ = ("count", "held")

    def __init__(self, held, count=1):
        self.held, self.count = held, count


@pytest.mark.parametrize("kind", [Box, Slotted])
def test_an_object_that_one_arm_changes_and_the_other_replaces(kind):
    """Found by fuzzing, seed 1113, 109: what the arm had put into it was lost."""

    def model(x):
        box = kind(x * 1)
        if x.sum() > 0:
            box = kind(x, count=2)
        else:
            box.held = box.held + x
        return box.held * box.count

    assert_kept_alive(model, (UP,), [(UP,), (DOWN,)])


def test_two_objects_that_know_each_other_and_are_replaced():
    def model(x):
        one, other = Box(x), Box(x + 1)
        one.friend, other.friend = other, one
        if x.sum() > 0:
            one.held, other.held = one.held * 2, other.held * 3
        else:
            one = Box(x - 1)
        return one.held * 2, other.held

    assert_kept_alive(model, (UP,), [(UP,), (DOWN,)])
