"""Functions of Python's library over traced items, or an open number of them (see capture/python/polyfills)."""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
import operator
import statistics

import pytest
import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, refused, rows
from trueport.capture.python.polyfills import of_bisect, of_functools, of_heapq, of_itertools, of_statistics

MANY = [*rows(1, 2, 7), (torch.ones(2, 3),), (-torch.ones(3, 3),)]


def weighed(items, x):
    """What depends on each item, and on their order."""
    total = x.sum(0)
    for item in items:
        total = total * 0.5 + item
    return total


@pytest.mark.parametrize(
    "model",
    [
        lambda x: weighed(itertools.filterfalse(lambda row: row.sum() > 0, x), x),
        lambda x: weighed(itertools.dropwhile(lambda row: row.sum() < 0, x), x),
        lambda x: weighed(itertools.compress(x, [row.sum() > 0 for row in x]), x),
        lambda x: sum(row * i for i, row in enumerate(itertools.chain.from_iterable([x, x[:1], [x.sum(0)]]))),
        lambda x: weighed(itertools.starmap(lambda i, row: row * i, enumerate(x)), x),
        lambda x: weighed((a - b for a, b in itertools.pairwise(x)), x),
        lambda x: weighed(itertools.islice(x, 1, None), x),
        lambda x: weighed(itertools.islice([x[0], x[0] * 2, x[0] * 3], x.shape[0]), x),
        lambda x: weighed((a * 2 + b for a, b in itertools.zip_longest(x, x[1:], fillvalue=x.sum(0))), x),
        lambda x: weighed((a * 2 + b for a, b in zip(*itertools.tee(x))), x),
        lambda x: weighed((a * 2 + b for a, b in itertools.combinations(x, 2)), x),
        lambda x: weighed((a * 2 + b for a, b in itertools.product(x, repeat=2)), x),
        lambda x: weighed(itertools.accumulate(x, lambda a, b: a * 0.5 + b, initial=x.sum(0)), x),
        lambda x: functools.reduce(lambda a, b: a * 0.5 + b, x, x.sum(0)),
    ],
    ids="filterfalse dropwhile compress from_iterable starmap pairwise islice islice_of_plain zip_longest tee"
    " combinations product accumulate reduce".split(),
)
def test_rows_of_a_free_number(model):
    assert_kept_alive(lambda x: model(x), rows(4)[0], MANY, dynamic_shapes=ROWS)


RUNS = [(torch.tensor(run),) for run in ([1, 1, 2], [1, 1, 1, 1], [0], [1, 0, 1, 0, 0, 2, 2], [2, 2, 1, 1, 0])]


def test_runs_of_the_same_number():
    """As vision-language models find the places of their pictures."""

    def model(x):
        found, position, placed = [], 0, []
        for kind, run in itertools.groupby(enumerate(x.tolist()), lambda pair: pair[1]):
            run = list(run)
            found.append((kind, run[0][0], run[-1][0] + 1))
        for kind, first, end in found:
            if kind == 0:
                placed.append(torch.arange(end - first).expand(2, -1) + position)
                position += end - first
            else:
                placed.append(torch.zeros(2, end - first, dtype=torch.long) + position)
                position += 1
        return torch.cat(placed, dim=1)

    assert_kept_alive(model, RUNS[3], RUNS, dynamic_shapes=ROWS)


def test_a_group_is_used_up():
    """By who goes through it, and when the next one is asked for."""

    def model(x):
        total = x.sum() * 0
        for kind, run in itertools.groupby(x, key=lambda number: number > 0):
            first = next(run)
            total = total * 3 + first + sum(run) + 100 * len(list(run))
            if total > 50:
                break
        return total

    assert_kept_alive(model, RUNS[3], RUNS, dynamic_shapes=ROWS)
    found = refused(lambda x: [len(list(run)) for run in [g for _, g in itertools.groupby(x.tolist())]], RUNS[3],
                    dynamic_shapes=ROWS)  # fmt: skip
    assert found.code == "TP103" and found.where is not None


def test_one_inside_another_and_a_consumer_that_leaves():
    """What each remembers from item to item is carried by one loop."""

    def model(x):
        total = x.sum(0)
        late = itertools.dropwhile(lambda row: row[0] < 0, itertools.chain(x, x * 2))
        for i, row in enumerate(itertools.takewhile(lambda row: row.sum() < 2, late)):
            total = total * 0.5 + row * i
            if total.sum() > 1:
                break
        return total

    assert_kept_alive(model, rows(4)[0], MANY, dynamic_shapes=ROWS)


def test_what_is_left_of_an_iterator():
    """`takewhile` takes one item more than it gives."""

    def model(x):
        left = iter(x)
        few = list(itertools.takewhile(lambda row: row.sum() < 0, left))
        return len(few), weighed(left, x)

    assert_kept_alive(model, rows(4)[0], MANY, dynamic_shapes=ROWS)


def test_the_sum_of_an_iterator():
    assert_kept_alive(lambda x: sum(iter(x)), rows(4)[0], MANY, dynamic_shapes=ROWS)


def sums(x):
    return [row.sum().item() for row in (x[0], x[1], x[2] * 2, x[2])]


def replaced(x):
    heap = [row.sum().item() for row in (x[0], x[1], x[2] * 2, x[2])]
    heapq.heapify(heap)
    return torch.tensor([heapq.heapreplace(heap, 0.25), heapq.heappushpop(heap, 0.5), *heap])


def put_in_order(x):
    ordered = [-1.0, 0.0, 1.0]
    bisect.insort(ordered, x[0].sum().item())
    bisect.insort_left(ordered, x[1].sum().item())
    return torch.tensor(ordered)


def place_between(x):
    ordered = sorted(sums(x))
    found = [bisect.bisect_left(ordered, 0.25, 1), bisect.bisect_right(ordered, 0.5, 0, 3)]
    return torch.tensor([*found, bisect.bisect_left(ordered, 1.0, key=lambda v: v * 2)])


def weights(x):
    items = sums(x)
    return torch.tensor([statistics.fmean(items, [1, 2, 3, 4]), statistics.variance(items, 0.5)])


def heap_of_pairs(x):
    """Pairs are compared by their second items where the first ones are equal."""
    heap = [(int(row.sum() > 0), i) for i, row in enumerate((x[0], x[1], x[2]))]
    heapq.heapify(heap)
    heapq.heappush(heap, (int(x.sum() > 0), -1))
    first = heapq.heappop(heap)
    return torch.tensor([*first, *heap[0], bisect.bisect_left([(0, 5), (1, -2)], first)])


def by_a_function(x):
    one, other = (int(x[0].sum() > 0), 1), (int(x[1].sum() > 0), 2)
    return torch.tensor([operator.lt(one, other), operator.ge(one, other)])


def called_by_the_library(x):
    """Items are traced, their number is plain: `accumulate` is the library's own, and calls our `max`."""
    return torch.tensor(list(itertools.accumulate(sums(x), func=max)))


def taken_off(x):
    kinds = [int(value > 0) for value in sums(x)]
    counted = collections.Counter({0: 3, 1: 5})
    counted.subtract(kinds)
    return torch.tensor([counted[0], counted[1]])


def counted_up(x):
    """The dict on the line of the Counter was taken for items that are counted."""
    counted = collections.Counter({0: 3, 1: 5})
    counted.update([int(value > 0) for value in sums(x)])
    named = collections.defaultdict(int, {0: 2})
    named[int(x.sum() > 0)] += 7
    return torch.tensor([counted[0], counted[1], named[0], named[1]])


@pytest.mark.parametrize(
    "model",
    [
        replaced,
        put_in_order,
        place_between,
        weights,
        heap_of_pairs,
        by_a_function,
        called_by_the_library,
        taken_off,
        counted_up,
    ],
    ids=lambda model: model.__name__,
)
def test_a_few_traced_items(model):
    others = [(torch.randn(3, 3),) for _ in range(4)]
    assert_kept_alive(model, rows(3)[0], [*others, (torch.ones(3, 3),), (-torch.ones(3, 3),)])


def test_put_in_order_row_by_row():
    def model(x):
        ordered = []
        for row in x:
            bisect.insort(ordered, row.sum().item())
        return torch.tensor(ordered)

    assert_kept_alive(model, rows(4)[0], MANY, dynamic_shapes=ROWS)


def test_the_line_is_the_users():
    """Nodes of a polyfill, and what it refuses, are where the user called it."""

    def model(x):
        return sum(itertools.takewhile(lambda row: row.sum() < 1, x), x.sum(0))

    program = assert_kept_alive(model, rows(4)[0], MANY[:1], dynamic_shapes=ROWS)
    assert {node.place.where.file for node in program.captured.root.walk()} == {__file__}

    def full(x):
        heap = []
        for row in x:
            heapq.heappush(heap, row.sum().item())  # <- here
        return torch.tensor(heap)

    found = refused(full, rows(4)[0], dynamic_shapes=ROWS)
    assert (found.code, found.place.where.file) == ("TP104", __file__)
    assert "# <- here" in open(__file__).readlines()[found.place.where.line - 1]


NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6]


def groups_of(groupby):
    return lambda *given: [(key, list(group)) for key, group in groupby(*given)]


@pytest.mark.parametrize(
    ("polyfill", "original", "given"),
    [
        (of_itertools.kept, filter, (None, [0, 1, 2])),
        (of_itertools.filterfalse, itertools.filterfalse, (lambda n: n > 2, NUMBERS)),
        (of_itertools.takewhile, itertools.takewhile, (lambda n: n < 5, NUMBERS)),
        (of_itertools.dropwhile, itertools.dropwhile, (lambda n: n < 5, NUMBERS)),
        (of_itertools.compress, itertools.compress, (NUMBERS, [1, 0, 1])),
        (of_itertools.chain, itertools.chain, (NUMBERS, "ab", ())),
        (of_itertools.from_iterable, itertools.chain.from_iterable, ([NUMBERS, "ab"],)),
        (of_itertools.accumulate, itertools.accumulate, (NUMBERS, max)),
        (groups_of(of_itertools.groupby), groups_of(itertools.groupby), (NUMBERS, lambda n: n < 5)),
        (groups_of(of_itertools.groupby), groups_of(itertools.groupby), ("aab",)),
        (of_itertools.product, itertools.product, (NUMBERS, "ab")),
        (of_itertools.combinations, itertools.combinations, (NUMBERS, 3)),
        (of_itertools.starmap, itertools.starmap, (max, [(1, 2), (4, 3)])),
        (of_itertools.pairwise, itertools.pairwise, (NUMBERS,)),
        (of_itertools.zip_longest, itertools.zip_longest, (NUMBERS, "abc")),
        (of_itertools.islice, itertools.islice, (NUMBERS, 1, 7, 2)),
        (of_heapq.nsmallest, heapq.nsmallest, (3, NUMBERS)),
        (of_heapq.nlargest, heapq.nlargest, (3, NUMBERS, abs)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_plain_things_a_polyfill_gives_what_the_library_gives(polyfill, original, given):
    """Outside a trace it is the Python that it is written in."""
    assert list(polyfill(*given)) == list(original(*given))


@pytest.mark.parametrize(
    ("polyfill", "original", "given"),
    [
        (of_functools.reduce, functools.reduce, (operator.sub, NUMBERS)),
        (of_functools.reduce, functools.reduce, (operator.sub, NUMBERS, 50)),
        (of_bisect.bisect_left, bisect.bisect_left, (sorted(NUMBERS), 1, 1, 6)),
        (of_bisect.bisect_right, bisect.bisect_right, (sorted(NUMBERS), 4)),
        (of_statistics.mean, statistics.mean, ([1.5, 2.5],)),
        (of_statistics.fmean, statistics.fmean, ([1.5, 2.5], [1, 3])),
        (of_statistics.stdev, statistics.stdev, ([1.5, 2.5, 4.0],)),
        (of_statistics.pstdev, statistics.pstdev, ([1.5, 2.5, 4.0],)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_plain_numbers(polyfill, original, given):
    assert polyfill(*given) == pytest.approx(original(*given))


def test_a_heap_is_in_the_order_of_heapq():
    ours, library = [], []
    for number in NUMBERS:
        of_heapq.heappush(ours, number)
        heapq.heappush(library, number)
    assert ours == library
    for name, given in (("heappop", ()), ("heapreplace", (7,)), ("heappushpop", (0,)), ("heappushpop", (8,))):
        assert getattr(of_heapq, name)(ours, *given) == getattr(heapq, name)(library, *given)
        assert ours == library
    of_heapq.heapify(ours := NUMBERS.copy())
    heapq.heapify(library := NUMBERS.copy())
    assert ours == library
