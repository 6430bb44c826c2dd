"""Functions of ours that are rewritten whatever a trace asks for: outside of one they are what they were."""

from __future__ import annotations

import itertools

from trueport.rewrite import ahead
from trueport.rewrite.ahead import rewritten


@rewritten
def counted(first, *, step=1):
    while True:
        yield first
        first += step


class Pair:
    def __init__(self, one, other):
        self.one, self.other = one, other

    @rewritten
    def larger(self, by=0):
        return self.one if self.one + by > self.other else self.other


def test_a_generator_waits():
    assert list(itertools.islice(counted(3), 3)) == [3, 4, 5]
    assert list(itertools.islice(counted(3, step=2), 2)) == [3, 5]


def test_a_method_and_its_defaults():
    assert (Pair(1, 2).larger(), Pair(1, 2).larger(by=5)) == (2, 1)


def test_names_around_it():
    limit = 3

    @rewritten
    def clipped(value):
        return limit if value > limit else value

    assert (clipped(2), clipped(7)) == (2, 3)


def test_it_is_rewritten_at_its_first_call_and_once(monkeypatch):
    asked = []
    real = ahead.rewritten_code
    monkeypatch.setattr(ahead, "rewritten_code", lambda code: asked.append(code.co_name) or real(code))

    @rewritten
    def sign(value):
        return 1 if value > 0 else -1

    assert asked == []
    assert [sign(2), sign(-2)] == [1, -1]
    assert asked == ["sign"]
    assert sign.__name__ == "sign"
