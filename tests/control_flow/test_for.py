"""`for`: over traced ranges, rows, enumerate, zip, reversed, unbind; what is plain stays unrolled."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import trueport
from tests.control_flow.kept_alive import FREE, ROWS, assert_kept_alive, rows

X = torch.tensor([0.5, -1.0, 2.0])


def by_count(model, **options):
    """Trip counts as the value of a tensor."""
    return assert_kept_alive(model, (X, torch.tensor(3)), [(X, torch.tensor(n)) for n in (0, 1, 8)], **options)


def by_rows(model, *counts, **options):
    """Trip counts as a free size."""
    example, *others = rows(*(counts or (4, 1, 7, 0)))
    return assert_kept_alive(model, example, others, dynamic_shapes=ROWS, **options)


def test_range_of_a_tensor():
    def model(x, n):
        for i in range(n):
            x = x * 1.5 + i
        return x

    by_count(model, loops=1, verify=True)


def test_range_of_an_item():
    def model(x, n):
        for i in range(1, int(n) + 1):
            x = x / i
        return x

    by_count(model, loops=1)


def test_range_of_a_size():
    def model(x):
        h = torch.zeros(3)
        for t in range(x.shape[0]):
            h = torch.tanh(h + x[t])
        return h

    by_rows(model, loops=1, verify=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: range(1, n),
        lambda n: range(0, n, 2),
        lambda n: range(1, n, 3),
        lambda n: range(n, 0, -1),
        lambda n: range(n - 1, -1, -2),
        lambda n: range(5, n),
        lambda n: range(n, 5),
        lambda n: range(-n, n),
        lambda n: reversed(range(n)),
        lambda n: reversed(range(1, n, 2)),
    ],
)
def test_range_with_start_and_step(make):
    def model(x):
        total = x.sum() * 0
        for i in make(x.shape[0]):
            total = total * 2 + i
        return total

    by_rows(model, loops=1)


def test_range_with_a_traced_step():
    def model(x, n):
        step = int(n) + 1
        for i in range(0, 10, step):
            x = x + i
        return x

    by_count(model, loops=1)


def test_the_rows_of_a_tensor():
    def model(x):
        h = torch.zeros(3)
        for row in x:
            h = h * 0.5 + row
        return h

    by_rows(model, loops=1)


def test_the_rows_of_something_computed():
    def model(x):
        total = torch.zeros(())
        for pair in x[1:] * 2:
            total = total * 0.5 + pair.sum()
        return total

    by_rows(model, 4, 1, 7, 2, loops=1)


def test_the_rows_of_rows():
    def model(x):
        total = torch.zeros(())
        for row in x:
            for item in row:
                total = total * 0.9 + item
        return total

    by_rows(model, loops=1)


def test_the_items_of_a_mask():
    """As many rounds as there are positive numbers."""

    def model(x):
        total = torch.zeros(())
        for item in x[x > 0]:
            total = total * 0.5 + item
        return total

    example = (torch.tensor([1.0, -1.0, 2.0]),)
    others = [(torch.tensor(v),) for v in ([-1.0, -1.0, -2.0], [-1.0, 5.0, -2.0], [1.0, 2.0, 3.0])]
    assert_kept_alive(model, example, others, loops=1)


def test_enumerate():
    def model(x):
        total = torch.zeros(3)
        for i, row in enumerate(x):
            total = total + row * i
        for i, row in enumerate(x, 2):
            total = total + row * i
        return total

    by_rows(model, loops=2)


def test_zip():
    def model(x):
        total = torch.zeros(3)
        for a, b in zip(x, x.flip(0)):
            total = total + a * b.sum()
        return total

    by_rows(model, loops=1)


def test_zip_of_unequal_lengths():
    def model(x):
        total = torch.zeros(3)
        for i, (a, b) in enumerate(zip(x[1:], x)):
            total = total + a * b.sum() + i
        return total

    by_rows(model, 4, 1, 7, 2, loops=1)


def test_zip_with_something_plain():
    def model(x):
        total = torch.zeros(3)
        for row, weight in zip(x, (1.0, 2.0, 3.0)):
            total = total + row * weight
        return total

    by_rows(model, 4, 1, 7, 2)


def test_zip_with_a_range():
    def model(x):
        total = torch.zeros(3)
        for i, row in zip(range(len(x)), x):
            total = total + row * i
        return total

    by_rows(model, loops=1)


def test_zip_with_an_endless_count():
    def model(x):
        total = torch.zeros(3)
        for row, i in zip(x, itertools.count(1)):
            total = total + row * i
        return total

    by_rows(model, loops=1)


def test_reversed():
    def model(x):
        h = torch.zeros(3)
        for row in reversed(x):
            h = h * 0.5 + row
        for i in reversed(range(x.shape[0])):
            h = h * 0.5 + x[i]
        return h

    by_rows(model, loops=2)


def test_reversed_enumerate():
    def model(x):
        h = torch.zeros(3)
        for i, row in reversed(list(enumerate(x))):
            h = h * 0.5 + row * i
        return h

    by_rows(model)


def test_rows_taken_apart():
    def model(x):
        first, *middle, last = x
        return torch.stack([first, *middle]).sum(0) * last if len(middle) > 1 else first - last

    assert_kept_alive(model, *rows(5), rows(2, 3, 9), dynamic_shapes=ROWS)


def test_unbind():
    def model(x):
        h = torch.zeros(3)
        for row in x.unbind():
            h = h * 0.5 + row
        for row in torch.unbind(x, 0):
            h = h * 0.5 + row
        return h

    by_rows(model, loops=2)


def test_unbind_along_another_axis():
    def model(x):
        h = torch.zeros(2)
        for column in x.unbind(1):
            h = h * 0.5 + column
        return h

    others = [(torch.randn(2, n),) for n in (1, 7, 0)]
    assert_kept_alive(model, (torch.randn(2, 4),), others, dynamic_shapes=({1: FREE},), loops=1)


def test_split_into_an_open_number_of_parts():
    def model(x):
        h = torch.zeros(3)
        for part in x.split(2):
            h = h * 0.5 + part.sum(0)
        return h

    by_rows(model, 4, 1, 7, loops=1)


def test_a_python_number_argument():
    def model(x, n):
        for i in range(n):
            x = x * 1.5 + i
        return x

    assert_kept_alive(model, (X, 3), [(X, 0), (X, 1), (X, 8)], loops=1)


def test_nested_loops():
    def model(x):
        total = torch.zeros(())
        for i in range(x.shape[0]):
            for j in range(i):
                total = total + x[i, 0] * x[j, 1]
        return total

    by_rows(model, loops=2)


def test_a_loop_in_a_branch_in_a_loop():
    def model(x):
        total = torch.zeros(())
        for row in x:
            if row.sum() > 0:
                for i in range(int(row.abs().sum()) + 1):
                    total = total + row[0] * i
            else:
                total = total - 1
        return total

    by_rows(model, loops=2, ifs=1)


def test_a_branch_after_the_loop_on_what_it_left():
    def model(x):
        total = torch.zeros(())
        for row in x:
            total = total + row.sum()
        if total > 0:
            return x * total
        return x

    by_rows(model, loops=1, ifs=1)


def test_the_index_after_the_loop():
    def model(x):
        i = -1
        for i in range(x.shape[0]):
            pass
        return i, x

    by_rows(model)


def test_a_tuple_as_target():
    def model(x):
        total = torch.zeros(3)
        for i, (a, *rest) in enumerate(zip(x, x * 2, x * 3)):
            total = total + a * i + rest[0] - rest[1]
        return total

    by_rows(model, loops=1)


def test_an_attribute_as_target():
    class Net(nn.Module):
        def forward(self, x):
            total = torch.zeros(3)
            for self.row in x:
                total = total + self.row
            return total

    by_rows(Net().eval(), 4, 1, 7)


def test_a_plain_range_stays_unrolled():
    def model(x, n):
        for i in range(3):
            if n > i:
                x = x * 2 + i
        return x

    by_count(model, loops=0, ifs=3)


def test_a_module_list_stays_unrolled():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x, n):
            for i, layer in enumerate(self.layers):
                x = layer(x)
                if n == i:
                    x = x.relu()
            return x

    by_count(Net().eval(), loops=0, ifs=3)


def test_early_exit_from_a_module_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x, n):
            for layer in self.layers:
                x = layer(x)
                if x.abs().max() > n:
                    return x * 2
            return x

    by_count(Net().eval(), loops=0)


def test_dict_items_and_other_plain_iterables():
    def model(x, n):
        for name, scale in {"a": 2.0, "b": 3.0}.items():
            if n > 2 or name == "b":
                x = x * scale
        for k, j in itertools.product(range(2), range(2)):
            x = x + (k if n > j else -j)
        return x

    by_count(model, loops=0)


def test_a_sum_of_nothing_is_the_number_it_begins_with():
    """Eager gives a Python 0 there, and a tensor otherwise: the model gives the same zero, as a float."""

    class Total(nn.Module):
        def forward(self, x):
            total = 0
            for row in x:
                total = total + row.max()
            return total

    program = trueport.export(Total(), (torch.randn(4, 3),), dynamic_shapes=({0: "rows"},))
    assert program.report.verified
    assert program(torch.zeros(0, 3)) == 0
