"""`collections.OrderedDict`, made in the model: keys of one arm, and keys that one arm moves to an end."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive


def added(x):
    d = OrderedDict(z=x)
    if x.sum() > 0:
        d["a"] = x * 2
    return d


def moved(x):
    d = OrderedDict([("a", x), ("b", x * 2), ("c", x - 1)])
    if x.sum() > 0:
        d.move_to_end("a")
    return d


def moved_to_the_front(x):
    d = added(x)
    d["q"] = x + 5
    d.move_to_end("q", last=False)
    return d


def moved_twice(x):
    d = moved(x)
    d.move_to_end("b")
    if x.max() > 2:
        d.move_to_end("c", last=False)
    return d


@pytest.mark.parametrize("make", [added, moved, moved_to_the_front, moved_twice])
def test_its_items_in_their_order(make):
    def model(x):
        out = x
        for key, value in make(x).items():
            out = out * 3 + (value if key != "a" else -value)
        return out

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_it_is_one_for_everybody():
    def model(x):
        d = added(x)
        known = isinstance(d, OrderedDict) and type(d) is OrderedDict and isinstance(d.copy(), OrderedDict)
        return d.get("a", x) + (1 if known else 100)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_code_that_is_not_rewritten_sees_one():
    def model(x):
        layers = OrderedDict(up=nn.ReLU(), down=nn.Sigmoid())
        if x.sum() > 0:
            x = x * 2
        return nn.Sequential(layers)(x)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_the_oldest_is_thrown_out():
    """As a cache of the last two does."""

    def model(x):
        recent = OrderedDict(first=x, second=x + 1)
        if x.sum() > 0:
            recent["third"] = x * 2
            recent.popitem(last=False)
        return torch.stack(list(recent.values()))

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_it_is_returned():
    def model(x):
        d = OrderedDict()
        d["out"] = x * 2
        if x.sum() > 0:
            d["out"] = x + 1
        d["aux"] = x
        return d

    assert_kept_alive(model, (UP,), [(DOWN,)])
