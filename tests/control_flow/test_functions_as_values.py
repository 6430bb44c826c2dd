"""Python's own functions, called by any name or handed on as values, on traced numbers."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
import operator
import statistics
from math import sqrt as root

import pytest
import torch
from torch import nn

import trueport
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, numbers, rows

OTHERS = numbers(0.5, 3.0, 6.25)


def by_another_name(t):
    g = math.exp
    return t + g(t.item()) + root(t.item())


def by_map_and_partial(t):
    one, two = map(math.sqrt, (t.item(), t.item() + 1))
    return torch.tensor([one, two, functools.partial(math.pow, 2)(t.item())])


def from_a_table(t):
    table = {"a": math.sin, "b": math.cos}
    y = table["a"](t.item())
    for f in (math.tanh, math.floor, abs):
        y = f(y)
    return t * y + table["b"](float(t))


def chosen_by_a_tensor(t):
    f = math.sin if t > 2 else math.cos
    return t + f(t.item())


def of_math(t):
    v, n = t.item(), int(t)
    exact = [math.factorial(n), math.comb(7, n), math.perm(7, n), round(n * 37, -1), n.bit_count(), type(v) is float]
    return torch.tensor([math.gamma(v), math.remainder(v, 2), math.frexp(v)[0], 2**n, 2**-n]), torch.tensor(exact)


def of_operator(t):
    v, items = t.item(), [0.5, 3.0, 0.5]
    found = [operator.contains(items, v), operator.countOf(items, v), operator.truth(v), operator.not_(v - 3)]
    return torch.tensor([*map(int, found), items.count(v), operator.index(int(t))])


def in_order(t):
    v = t.item()
    heap = [2.0, 4.0, 2.5, 5.0]
    heapq.heappush(heap, v)
    smallest = heapq.nsmallest(2, [3.0, v, 2.0])
    return torch.tensor([*heap, heapq.heappop(heap), *heap, *smallest, bisect.bisect([0.5, 2.0, 4.0], v)])


def of_statistics(t):
    items = [t.item(), 2.0, 4.0]
    return torch.tensor([statistics.mean(items), statistics.stdev(items), statistics.pvariance(items)])


@pytest.mark.parametrize(
    "model",
    [
        by_another_name,
        by_map_and_partial,
        from_a_table,
        chosen_by_a_tensor,
        of_math,
        of_operator,
        in_order,
        of_statistics,
    ],
    ids=lambda model: model.__name__,
)
def test_a_function_of_pythons(model):
    assert_kept_alive(model, (torch.tensor(2.0),), OTHERS)


def test_a_function_that_is_an_attribute():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = math.tanh

        def forward(self, t):
            return t + self.act(t.item())

    assert_kept_alive(Net().eval(), (torch.tensor(2.0),), OTHERS)


def divided(t):
    n = int(t)
    try:
        return t + 10 // n + 7 % n
    except ZeroDivisionError:
        return t - 9


def outside_its_domain(t):
    try:
        return t + math.sqrt(t.item() - 1) + math.log(t.item())
    except ValueError:
        return t - 9


def of_an_empty_list(t):
    items = [i * 1.5 for i in range(int(t))]
    try:
        return t + items.pop()
    except IndexError:
        return t - 9


@pytest.mark.parametrize("model", [divided, outside_its_domain, of_an_empty_list], ids=lambda model: model.__name__)
def test_an_error_of_pythons_own_that_is_caught(model):
    assert_kept_alive(model, (torch.tensor(2.0),), numbers(0.0, 1.0, 5.0))


# --- the largest and what is in order, of open rows


def first_of_the_largest(x):
    return max(x, key=lambda row: row.sum().item())


def place_of_the_smallest(x):
    return x[min(range(x.shape[0]), key=lambda i: x[i, 0])]


@pytest.mark.parametrize("model", [first_of_the_largest, place_of_the_smallest], ids=lambda model: model.__name__)
def test_the_largest_of_open_rows_by_a_key(model):
    first, *others = rows(4, 1, 6)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS)


def sorted_rows(x):
    ordered = sorted(x, key=lambda row: row[1].item(), reverse=True)
    return torch.stack(ordered) if ordered else x


def sorted_numbers(x):
    order = list(range(x.shape[0]))
    order.sort(key=lambda i: -x[i, 0])
    return x[order].sum(1), torch.tensor(sorted([row.sum().item() for row in x]))


def largest_or_default(x):
    return torch.tensor(max((row.sum().item() for row in x if row[0] > 0), default=-1.0))


def pairs(x):
    total = torch.zeros(3)
    for one, other in itertools.pairwise(x):
        total = total + (other - one).abs()
    for one, other in itertools.combinations(x, 2):
        total = total + one * other
    return total


def parts(x):
    total = torch.zeros(3)
    for row in itertools.islice(x, 2):
        total = total * 0.5 + row
    for row in itertools.dropwhile(lambda row: row[0] < 0, x):
        total = total * 0.5 + row
    return total + sum(itertools.compress(x, x[:, 1] > 0))


def together(x):
    total = torch.zeros(3)
    for (row, k), two in zip(zip(x, itertools.cycle([1.0, 2.0])), itertools.repeat(2.0)):
        total = total + row * k * two
    for row, following in itertools.zip_longest(x, x[1:], fillvalue=torch.ones(3)):
        total = total * 0.5 + row * following
    return total + sum(itertools.starmap(lambda a, b: a * b, zip(x, x * 2, strict=True)))


@pytest.mark.parametrize(
    "model",
    [sorted_rows, sorted_numbers, largest_or_default, pairs, parts, together],
    ids=lambda model: model.__name__,
)
def test_open_rows_in_order_and_in_pairs(model):
    first, *others = rows(4, 0, 1, 3)
    assert_kept_alive(model, first, others, dynamic_shapes=ROWS)


# --- texts, and objects of the user's


def test_texts_made_of_a_text_that_a_tensor_chose():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"up_1": nn.Linear(3, 3), "down_1": nn.Linear(3, 2)})

        def forward(self, x):
            name = "up" if x.sum() > 0 else "down"
            keys = [f"{name}_{1}", "_".join([name, "1"]), "%s_%d" % (name, 1), "{}_1".format(name)]  # noqa: UP031, UP032
            return sum(self.heads[key](x).sum() for key in keys)

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), (UP,), [(DOWN,)])


class Total:
    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        return bool(self.x.sum() < other.x.sum())

    def __float__(self):
        return float(self.x.sum())


def test_objects_that_tell_their_order_and_their_number():
    def model(x):
        largest = max(Total(x), Total(-x), Total(x * 3))
        ordered = sorted([Total(x), Total(-x)])
        return largest.x + ordered[0].x * float(largest)

    assert_kept_alive(model, (UP,), [(DOWN,)])


class InSlots:
    __slots__ = ("count", "value")

    def __init__(self, value):
        self.value, self.count = value, 0

    def halve(self):
        self.value = self.value / 2
        self.count += 1


def test_an_object_with_slots_that_rounds_and_arms_change():
    def model(t):
        held = InSlots(t)
        while held.value > 1:
            held.halve()
        if held.count > 2:
            held.value = held.value - 5
        return held.value * held.count

    assert_kept_alive(model, (torch.tensor(20.0),), numbers(0.5, 3.0))


def test_a_list_that_may_be_empty_has_a_dtype_that_is_told():
    """`torch.tensor([])` is float32 in eager: nobody gets a wrong number, so it is a warning."""

    def model(x):
        return torch.tensor([i for i in range(x.shape[0]) if x[i, 0] > 0])

    torch.manual_seed(0)
    program = trueport.export(model, (torch.randn(4, 3),), dynamic_shapes=ROWS)
    told = [d for d in program.report.diagnostics if "dtype" in (d.fix or "")]
    assert [d.severity.name for d in told] == ["WARNING"]
