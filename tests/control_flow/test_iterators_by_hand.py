"""Plain iterators of which an arm or a round takes items with `next`: how far one is depends on the way."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, refused, rows

MANY = rows(0, 1, 2, 7)


def numbers():
    yield 1.0
    yield 2.0
    yield 3.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1.0, 2.0, 3.0]),
        lambda: iter(range(1, 9)),
        lambda: (number for number, _ in zip([1.0, 2.0, 3.0], "abc", strict=True)),
        lambda: map(float, "123"),
        lambda: itertools.count(1),
        lambda: itertools.cycle([1.0, 2.0, 3.0]),
        numbers,
    ],
    ids="list range expression map count cycle generator".split(),
)
def test_one_more_is_taken_in_an_arm(make):
    def model(x):
        items = make()
        if x.sum() > 0:
            x = x + next(items)
        return x * next(items)

    assert_kept_alive(model, (UP,), [(DOWN,)])


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        layers = iter(self.layers)
        if x.sum() > 0:
            x = next(layers)(x)
        x = next(layers)(x)
        for layer in layers:
            x = layer(x).tanh()
        return x


def test_layers_of_which_an_arm_takes_one():
    assert_kept_alive(Layers(), (UP,), [(DOWN,)])


@pytest.mark.parametrize("make", [lambda: itertools.cycle([1.0, 2.0, 3.0]), lambda: itertools.count(2)])
def test_each_round_takes_the_next(make):
    def model(x):
        weights, total = make(), torch.zeros(3)
        for row in x:
            total = total + row * next(weights)
        return total + next(weights)

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def test_rows_two_at_a_time():
    def model(x):
        items, total = iter(x), torch.zeros(3)
        for first, second in zip(items, items, strict=False):
            total = total + first * second
        return total

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: sum(itertools.filterfalse(lambda row: row.sum() > 0, x), torch.zeros(3)),
        lambda x: sum((a * b for a, b in zip(*itertools.tee(x), strict=True)), torch.zeros(3)),
    ],
    ids=["filterfalse", "tee"],
)
def test_more_of_itertools(model):
    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def averages():
    total, count, average = 0.0, 0, None
    while True:
        total = total + (yield average)
        count += 1
        average = total / count


def test_a_generator_that_rounds_send_values_to_is_refused():
    """Its frame waits: what it did in a round that is traced cannot be undone."""

    def model(x):
        average, last = averages(), torch.zeros(())
        next(average)
        for row in x:
            last = average.send(row.sum())  # <- here
        return last

    found = refused(model, (torch.randn(4, 3),), dynamic_shapes=ROWS)
    assert found.code == "TP104"
    assert found.where.line == model.__code__.co_firstlineno + 4
    assert "send" in found.message


def test_what_a_generator_computes_in_two_arms_is_refused():
    def model(x):
        made = (x * k for k in (2, 3))
        if x.sum() > 0:
            y = next(made) + 1
        else:
            y = next(made) - 1
        return y

    assert refused(model, (UP,)).code == "TP104"


def test_what_is_left_after_a_function_took_all():
    def model(x):
        left = iter(x)
        first = next(left)
        if first.sum() > 0:
            total = sum(left, first)
        else:
            total = first
        again = list(left)
        return total, len(again), len(list(left))

    assert_kept_alive(model, (torch.randn(4, 3),), [*rows(1, 2, 7), (UP,), (DOWN,)], dynamic_shapes=ROWS)


def test_what_is_left_after_a_function_that_may_stop_early_is_refused():
    def model(x):
        left = iter(x)
        found = any(row.sum() > 0 for row in left)
        return x * len(list(left)), found

    assert refused(model, (torch.randn(4, 3),), dynamic_shapes=ROWS).code == "TP104"


def test_one_of_several_iterators():
    """Looked up by a number of the data; eager raises where there is none, and where it is used up."""

    def model(kinds, x):
        rows, total = {1: iter(x), 2: None, 3: iter(x * 10)}, torch.zeros(3)
        for kind in kinds.tolist():
            if kind > 0:
                total = total * 0.5 + next(rows[kind])
        return total

    x = torch.randn(4, 3)
    given = [(torch.tensor(kinds), x) for kinds in ([1, 0, 3], [0], [3, 1, 1, 3, 3], [1, 1, 1, 1])]
    assert_kept_alive(model, given[0], given, dynamic_shapes=({0: "n"}, {0: "m"}))


def test_one_of_several_iterators_or_none():
    def model(kinds, x):
        rows, total = [iter(x), None], torch.zeros(3)
        for kind in kinds.tolist():
            try:
                total = total * 0.5 + next(rows[kind])
            except (TypeError, StopIteration):
                total = total - 1
        return total

    x = torch.randn(2, 3)
    given = [(torch.tensor(kinds), x) for kinds in ([1, 0, 0], [0], [0, 0, 0, 1])]
    assert_kept_alive(model, given[0], given, dynamic_shapes=({0: "n"}, {0: "m"}))
