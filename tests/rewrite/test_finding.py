"""Functions to be rewritten are found near the frame that asks; all objects are gone through only otherwise."""

from __future__ import annotations

import functools
import operator

import pytest
import torch
from torch import nn

import trueport
from trueport.rewrite import functions

UP, DOWN = torch.ones(3), -torch.ones(3)


def helper(x):
    return x * 2 if x.sum() > 0 else x


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * 2

    return wrapper


@doubled
def decorated(x):
    return x * 3 if x.sum() > 0 else x


class Base(nn.Module):
    def pick(self, x):
        return x - 1 if x.sum() > 0 else x


class Net(Base):
    @property
    def scale(self):
        return 2.0 if self.weight.sum() > 5 else 3.0

    @staticmethod
    def half(x):
        return x / 2 if x.sum() > 0 else x

    @classmethod
    def third(cls, x):
        return x / 3 if x.sum() > 0 else x

    def forward(self, x):
        self.weight = x
        nested = lambda y: y + 1 if y.sum() > 0 else y  # noqa: E731
        return self.pick(helper(decorated(x))) + self.half(x) + self.third(x) + nested(x) + self.scale


HIDDEN = [[operator.itemgetter(0)((lambda x: x * 2 if x.sum() > 0 else x,))]]
"""A list in a list: nothing that a name, a class or a closure leads to."""


class Hiding(nn.Module):
    def forward(self, x):
        return HIDDEN[0][0](x)


@pytest.fixture
def walks(monkeypatch):
    """How often all objects were gone through."""
    counted = []
    walk = functions.everywhere
    monkeypatch.setattr(functions, "everywhere", lambda name: counted.append(name) or walk(name))
    return counted


def agrees(model):
    program = trueport.export(model, (UP,), verify=False, state="frozen")
    for x in (UP, DOWN):
        torch.testing.assert_close(torch.as_tensor(program(x)), model(x))


def test_what_is_near_is_found_there(walks):
    agrees(Net().eval())
    assert not walks


def test_what_is_hidden_is_found_nevertheless(walks):
    agrees(Hiding().eval())
    assert walks


def test_one_that_was_missed_asks_again(walks, monkeypatch):
    """The code is exchanged in the function that makes closures, and a closure that exists already is hidden."""

    def make():
        def pick(x):
            return x * 2 if x.sum() > 0 else x

        return pick

    class Local(nn.Module):
        made = [[make()]]

        def forward(self, x):
            return self.made[0][0](x) + make()(x)

    agrees(Local().eval())
    assert walks
