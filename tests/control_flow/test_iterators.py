"""Iterators that are advanced step by step: a traced value tells whether there is another item."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, numbers, rows


class Countdown:
    def __init__(self, t):
        self.t = t

    def __iter__(self):
        return self

    def __next__(self):
        if self.t <= 0:
            raise StopIteration
        self.t = self.t - 1
        return self.t

    def halve(self):
        self.t = self.t / 2
        return int(self.t)


def until_it_stops(t):
    total = t * 0
    for value in Countdown(t):
        total = total + value
    return total


def until_a_break(t):
    total, steps = t * 0, 0
    for value in Countdown(t):
        if value < 2:
            break
        total = total + value
        steps += 1
    else:
        total = total - 100
    return total * steps


def until_a_sentinel(t):
    total = 0
    for value in iter(Countdown(t).halve, 0):
        total += value
    return torch.tensor(total)


def the_next_or_a_default(t):
    down = Countdown(t)
    return next(down, torch.tensor(-1.0)) * 10 + next(down, torch.tensor(-2.0))


@pytest.mark.parametrize(
    "model", [until_it_stops, until_a_break, until_a_sentinel, the_next_or_a_default], ids=lambda model: model.__name__
)
def test_an_iterator_of_the_users(model):
    assert_kept_alive(model, (torch.tensor(5.0),), numbers(0.0, 1.0, 2.0, 9.0))


class Rows:
    def __init__(self, x):
        self.x, self.i = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.x.shape[0]:
            raise StopIteration
        self.i += 1
        return self.x[self.i - 1]


def of_a_class(x):
    total = torch.zeros(3)
    for row in Rows(x):
        total = total * 0.5 + row
    return total


def by_hand(x):
    rows_left = iter(x)
    total = torch.zeros(3)
    while True:
        try:
            row = next(rows_left)
        except StopIteration:
            break
        total = total * 0.5 + row
    return total


@pytest.mark.parametrize("model", [of_a_class, by_hand], ids=lambda model: model.__name__)
def test_rows_one_by_one(model):
    first, *others = rows(4, 0, 1)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS, loops=1)


def test_the_first_row_by_itself():
    def model(x):
        left = iter(x)
        total = next(left)
        for row in left:
            total = total * 0.5 + row
        return total

    first, *others = rows(4, 1)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS)
