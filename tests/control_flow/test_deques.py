"""`collections.deque`: windows, queues and stacks whose length the rounds of a loop or the arms of a branch change."""

from __future__ import annotations

import collections
from collections import deque
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, numbers, refused, rows

MANY = rows(0, 1, 2, 7)


def window(x):
    recent = deque(maxlen=3)
    total = torch.zeros(())
    for row in x:
        recent.append(row)
        total = total + sum(recent).sum() / len(recent)
    return total


def queue(x):
    waiting, total, weight = deque(), torch.zeros(3), 1.0
    for i, row in enumerate(x):
        waiting.append((i, row))
    while waiting:
        i, row = waiting.popleft()
        total = total + i * row * weight
        weight = weight * 0.5
    return total


def both_ends(x):
    left, total = deque(x), torch.zeros(3)
    while left:
        first = left.popleft()
        total = total + (first * left.pop() if left else first)
    return total


def filled_from_the_left(x):
    newest = collections.deque(maxlen=2)
    for row in x:
        newest.appendleft(row)
        newest.extendleft([row * 2])
    return sum((row * (i + 1) for i, row in enumerate(newest)), torch.zeros(3))


def largest_of_each_window(x):
    """The places of the rows that may still be the largest, as it is done by hand."""
    values, places, out = x[:, 0], deque(), [x[:0, 0].sum()]
    for i in range(values.shape[0]):
        while places and values[places[-1]] <= values[i]:
            places.pop()
        places.append(i)
        if places[0] <= i - 3:
            places.popleft()
        out.append(values[places[0]])
    return torch.stack(out)


def rotated(x):
    ring = deque(maxlen=4)
    for row in x:
        ring.append(row)
        ring.rotate(1)
    ring.rotate(-2)
    return sum((row * (i + 1) for i, row in enumerate(reversed(ring))), torch.zeros(3))


def emptied(x):
    batch, total = deque(), torch.zeros(3)
    for row in x:
        batch.extend([row, row * 2])
        if len(batch) >= 4:
            total = total + torch.stack(list(batch)).sum(0)
            batch.clear()
    return total + len(batch)


def bound_anew(x):
    recent = deque([x.sum(0)], maxlen=2)
    for row in x:
        recent = recent.copy()
        recent.append(row)
    return sum(recent) + recent.maxlen


@pytest.mark.parametrize(
    "model",
    [window, queue, both_ends, filled_from_the_left, largest_of_each_window, rotated, emptied, bound_anew],
)
def test_a_length_that_rounds_change(model):
    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def test_one_that_is_full_keeps_its_number_of_items():
    """Each is carried by itself: nothing is stacked in the loop but what the user stacks."""

    def model(x):
        recent = deque([torch.zeros(3), torch.zeros(3)], maxlen=2)
        for row in x:
            recent.append(row)
        return recent[0] - recent[1]

    program = assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS, loops=1)
    ops = {node.op_type for node in program.model.graph.all_nodes()}
    assert "Concat" not in ops


def test_items_that_are_none_until_they_are_pushed_out():
    def model(x):
        before, total = deque([None, None], maxlen=2), torch.zeros(3)
        for row in x:
            if before[0] is not None:
                total = total + (row - before[0])
            before.append(row)
        return total

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def test_work_that_makes_more_work():
    def model(n):
        todo, seen, total = deque([n.item()]), 0, 0
        while todo:
            value = todo.popleft()
            seen, total = seen + 1, total + value
            if value > 1:
                todo.append(value // 2)
                todo.append(value - 2)
        return torch.tensor(seen) + total

    assert_kept_alive(model, (torch.tensor(5),), numbers(0, 1, 8))


def test_an_arm_that_changes_the_length():
    def model(x):
        items = deque([x, x + 1, x + 2])
        if x.sum() > 0:
            items.popleft()
        else:
            items.appendleft(x * 3)
        return torch.stack(list(items)).sum(0) * len(items)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_it_is_a_deque_to_whoever_asks():
    def model(x):
        items = deque(maxlen=2)
        for row in x:
            items.append(row)
        kind = 1 if isinstance(items, deque) else 2
        return sum(items, torch.zeros(3)) * kind + (10 if isinstance(items, list) else 20)

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def test_from_an_empty_one_nothing_can_be_taken():
    def model(x):
        items = deque()
        for row in x:
            if row[0] > 0:
                items.append(row)
        try:
            return items.popleft()
        except IndexError:
            return torch.full((3,), 7.0)

    assert_kept_alive(model, (torch.ones(2, 3),), [(torch.zeros(0, 3),), (-torch.ones(2, 3),)], dynamic_shapes=ROWS)


class Ring:
    """As users write it: in a class of its own."""

    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, item):
        self.items.append(item)

    @property
    def full(self):
        return len(self.items) == self.items.maxlen


@dataclass
class Made:
    items: deque = field(default_factory=deque)

    def push(self, item):
        self.items.append(item)


@dataclass
class MadeByAFunction:
    items: deque = field(default_factory=lambda: deque(maxlen=2))

    def push(self, item):
        self.items.append(item)


@pytest.mark.parametrize("make", [lambda: Ring(3), Made, MadeByAFunction], ids=["init", "factory", "function"])
def test_in_an_object_that_the_model_makes(make):
    def model(x):
        ring = make()
        for row in x:
            if row[0] > 0:
                ring.push(row)
        return sum(ring.items, torch.zeros(3)) + len(ring.items)

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


def test_a_property_that_asks_whether_it_is_full():
    def model(x):
        ring, total = Ring(3), torch.zeros(3)
        for row in x:
            ring.push(row)
            if ring.full:
                total = total + torch.stack(tuple(ring.items)).mean(0)
        return total

    assert_kept_alive(model, (torch.randn(4, 3),), MANY, dynamic_shapes=ROWS)


class OlderThanTheCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.recent = deque(maxlen=2)

    def forward(self, x):
        self.recent.clear()
        for row in x:
            self.recent.append(row)
        return sum(self.recent)


def test_one_that_was_there_before_the_model_ran():
    found = refused(OlderThanTheCall(), (torch.randn(4, 3),), dynamic_shapes=ROWS)
    assert found.code == "TP103"
    assert "`recent`, a deque that was there before the model ran" in found.message
    assert "in `forward`" in found.fix
