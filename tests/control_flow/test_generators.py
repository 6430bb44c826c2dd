"""Generators and comprehensions that decide by traced values: in a trace, a generator calls what goes through it."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, refused, rows

SMALL_TO_LARGE = [(torch.ones(3),), (torch.zeros(3),), (torch.ones(3) * 100,), (-torch.ones(3) * 3,)]
MANY_ROWS = [*rows(1, 7), (torch.ones(2, 3),), (-torch.ones(3, 3),), (torch.zeros(0, 3),)]


def halves(x):
    while x.abs().sum() > 1:
        x = x / 2
        yield x


def forever(x):
    while True:
        x = x * 0.5 + 1
        yield x


def positive(x):
    for row in x:
        if row.sum() > 0:
            yield row


def mixed(x):
    yield x.sum(0)
    yield from positive(x)
    if x.sum() > 0:
        yield x.mean(0)


def test_a_generator_that_ends_by_a_value():
    def model(x):
        total = torch.zeros_like(x)
        for half in halves(x):
            total = total + half
        return total

    assert_kept_alive(model, SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:], loops=1)


def test_a_generator_without_end_that_an_enumerate_hides():
    """The loop goes through an `enumerate` or a `map`, not through the generator: each round would be a branch."""

    def model(x):
        for count, value in enumerate(map(lambda each: each * 2, forever(x))):
            small = (value - 4).abs().max() < 0.1
            if small or count >= 40:
                break
        return x + value, count

    assert_kept_alive(model, SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:], loops=1)


def test_a_generator_without_end_that_the_loop_leaves():
    """Only the consumer decides; its `break` ends the generator's own loop."""

    def model(x):
        count = 0
        for value in forever(x):
            count += 1
            if (value - 2).abs().max() < 0.1:
                break
        return value, count

    assert_kept_alive(model, SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:], loops=1)


def test_what_happens_first_in_eager_happens_first():
    """The generator reads what the body of the loop wrote in the round before."""

    def doubling(state):
        while state["x"].abs().sum() < 50:
            yield state["x"] * 2

    def model(x):
        state = {"x": x + 1}
        for value in doubling(state):
            state["x"] = value + 0.5
        return state["x"]

    assert_kept_alive(model, SMALL_TO_LARGE[0], [SMALL_TO_LARGE[2], (torch.ones(3) * 9,)])


@pytest.mark.parametrize(
    "consumer",
    [
        lambda x: torch.stack([*positive_or_sum(x)]),
        lambda x: torch.stack(list(positive_or_sum(x))),
        lambda x: torch.stack(tuple(row * 2 for row in positive_or_sum(x))),
        lambda x: sum(row.sum() for row in positive_or_sum(x)),
        lambda x: max(row.max() for row in positive_or_sum(x)),
        lambda x: x.sum(0) + any(row.sum() > 2 for row in positive_or_sum(x)),
    ],
    ids=["unpacked", "list", "tuple of an expression", "sum", "max", "any"],
)
def test_everything_that_goes_through_a_generator(consumer):
    assert_kept_alive(consumer, rows(4)[0], MANY_ROWS, dynamic_shapes=ROWS)


def positive_or_sum(x):
    yield x.sum(0)
    yield from positive(x)


def test_numbered_and_zipped():
    def model(x):
        total = x.sum(0) * 0
        for i, row in enumerate(mixed(x)):
            total = total + row * (i + 1)
        for row, k in zip(positive(x), range(10), strict=False):
            total = total - row * k
        return total

    assert_kept_alive(model, rows(4)[0], MANY_ROWS[:-1], dynamic_shapes=ROWS)


def test_a_method_that_returns_early_and_one_that_is_nested():
    class Net(nn.Module):
        def steps(self, x):
            for k in range(5):
                x = torch.tanh(x) * k
                if x.sum() < 0:
                    return
                yield k, x

        def forward(self, x):
            def shrinking():
                small = x
                for _ in range(3):
                    small = small * 0.5
                    if small.abs().max() < 0.2:
                        return
                    yield small

            out = x
            for k, step in self.steps(x):
                out = out + step * k
            return torch.cat([*shrinking(), out])

    assert_kept_alive(Net().eval(), SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:])


def test_an_object_whose_iter_is_a_generator():
    class Bag:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            for row in self.x:
                if row[0] > 0:
                    yield row * 2

    def model(x):
        total = x.sum(0)
        for row in Bag(x):
            total = total - row
        return total

    assert_kept_alive(model, rows(4)[0], MANY_ROWS, dynamic_shapes=ROWS)


def test_the_first_that_fits():
    def model(x):
        return x * next((i for i, row in enumerate(x) if row.sum() > 0), -1)

    assert_kept_alive(model, rows(4)[0], MANY_ROWS, dynamic_shapes=ROWS)


def test_a_comprehension_with_a_test():
    def model(x):
        kept = [row * 2 for row in x if row.sum() > 0 and row[0] > 0]
        return torch.stack([*kept, x.sum(0)]), len(kept)

    assert_kept_alive(model, rows(4)[0], MANY_ROWS, dynamic_shapes=ROWS)


def test_a_comprehension_of_two_loops_with_a_walrus():
    def model(x):
        last = x.sum(0)
        pairs = [(last := a * b) for a in x for b in x[:2]]
        return torch.stack([x.sum(0), *pairs]), last

    assert_kept_alive(model, rows(4)[0], [*rows(1, 2, 7)], dynamic_shapes=ROWS)


def test_counting_without_end():
    def model(x):
        for i in itertools.count(3, 2):
            x = x - i
            if x.sum() < 0:
                break
        return x, i

    assert_kept_alive(model, SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:], loops=1)


def test_a_cycle_without_end_is_refused():
    """It gives ever more items, and nothing tells which the next one is when the model runs."""

    def model(x):
        for value in itertools.cycle([1.0, 2.0]):
            x = x - value
            if x.sum() < 0:  # <- here
                break
        return x

    assert refused(model, SMALL_TO_LARGE[0]).code == "TP104"


def test_a_value_sent_to_a_generator_is_refused():
    def steps(x):
        while x.sum() > 1:
            x = (yield x) or x / 2

    def model(x):
        for step in steps(x):
            x = x + step
        return x

    found = refused(model, SMALL_TO_LARGE[2])
    assert found.code == "TP107"
    assert "send" in found.message


def test_outside_a_trace_a_rewritten_generator_waits():
    """Rewritten code is plain Python outside a trace, and a generator gives one item at a time there."""
    from trueport.rewrite import Rewriting

    rewriting = Rewriting()
    rewriting.add(forever.__code__)
    try:
        assert [v.item() for v in itertools.islice(forever(torch.tensor(0.0)), 2)] == [1.0, 1.5]
    finally:
        rewriting.end()


@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.stack([x.sum(0), *filter(lambda row: row.sum() > 0, x)]),
        lambda x: sum(filter(lambda v: v > 0, x[0])) + sum(map(lambda v: v * 2, x[0])),
        lambda x: functools.reduce(lambda a, b: a * 0.5 + b if a.sum() > b.sum() else b, x),
        lambda x: torch.stack(list(itertools.accumulate(x, lambda a, b: a * 0.5 + b))),
        lambda x: sum(row * i for i, row in enumerate(itertools.chain(x, [torch.ones(3)], x[:1]))),
        lambda x: sum(x[i] * j for i, j in itertools.product(range(x.shape[0]), range(2))),
        lambda x: x.sum(0) + sum(row.sum() for row in itertools.takewhile(lambda row: row.sum() < 1, x)),
    ],
    ids="filter filter-plain reduce accumulate chain product takewhile".split(),
)
def test_functions_that_go_through_something(model):
    assert_kept_alive(lambda x: model(x), rows(4)[0], MANY_ROWS[:-1], dynamic_shapes=ROWS)


def test_an_iterator_that_stops_by_a_value():
    """The loop catches its StopIteration; dropped like other errors, it would never end."""

    class Halving:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            return self

        def __next__(self):
            self.x = self.x * 0.5
            if self.x.abs().sum() < 0.1:
                raise StopIteration
            return self.x

    def model(x):
        for value in Halving(x):
            x = x + value
        return x

    assert_kept_alive(model, SMALL_TO_LARGE[0], SMALL_TO_LARGE[1:], loops=1)
