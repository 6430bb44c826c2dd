"""Python's own arithmetic and comparisons with numbers that come out of tensors."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, rows

NUMBERS = [(torch.tensor(a), torch.tensor(b)) for a in (0.49, -7.3, 2.5) for b in (1, -3, 5)]


@pytest.mark.parametrize(
    "compute",
    [
        lambda f, n: torch.tensor([float(v) for v in divmod(int(f), int(n))]),
        lambda f, n: torch.tensor(math.ceil(f / 2) + math.floor(float(f)) + round(float(f))),
        lambda f, n: torch.tensor(2 ** abs(int(n))),
        lambda f, n: torch.tensor(int(n).bit_length()),
        lambda f, n: torch.tensor(math.gcd(int(n), 6) + math.lcm(int(n), 4)),
        lambda f, n: torch.tensor((float(f) > 0) is True),
        lambda f, n: torch.tensor((float(f) > 0) != (int(n) > 0)),
        lambda f, n: torch.ones(2) if bool(f > 0) == bool(n > 2) else torch.zeros(2),
        lambda f, n: torch.ones(2) if n in torch.tensor([1, 2]) else torch.zeros(2),
        lambda f, n: torch.tensor(int(n) not in torch.tensor([1, 2])),
        lambda f, n: torch.tensor(max((f.item(), 1), (n.item(), 2))[1]),
        lambda f, n: torch.tensor((n.item(), f.item()) < (1, 2.5)),
        lambda f, n: torch.tensor((n.item(), 4) >= (1, 3, 2)),
        lambda f, n: torch.tensor([i for _, i in sorted([(f.item(), 0), (n.item(), 1), (2.5, -1)])]),
        lambda f, n: f * round(n.item() * 5, -1),
        lambda f, n: torch.tensor(1 if n.item() in (True, 5.0) else 2),
    ],
    ids="divmod rounding power bits gcd is unequal equal in not-in max tuples lengths sorted tens truth-among".split(),
)
def test_as_python_computes(compute):
    assert_kept_alive(lambda f, n: compute(f, n), (torch.tensor(7.3), torch.tensor(3)), NUMBERS)


def test_the_number_of_elements_of_a_shape():
    """`torch.Size.numel` asks for plain numbers in C++."""

    def model(x):
        return x.reshape(x.shape.numel()) * x.shape[1:].numel()

    rows = [(torch.randn(count, 3),) for count in (0, 1, 5)]
    assert_kept_alive(model, (torch.randn(4, 3),), rows, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))


def test_division_by_a_negative_number_after_another():
    """Torch made `n // -6` of `n // 3 // -2`."""

    def model(x, n: int):
        return x * (n // 3 // -2), (n // -3) // 2, divmod(n // 2, -3)

    assert_kept_alive(model, (torch.randn(2), 1), [(torch.randn(2), n) for n in (0, 2, 5, 7, -1, -4)])


NOT_A_NUMBER = torch.tensor([float("nan"), 1.0])


def test_what_is_not_less_need_not_be_more():
    """`not a < b` holds where a is no number, and `a >= b` does not: the loop ended after one round."""

    def model(x):
        for rounds in range(6):
            x = x * 0.5
            if x.sum().item() < 0.1:
                break
        return x, rounds

    assert_kept_alive(model, (torch.ones(2),), [(NOT_A_NUMBER,), (torch.zeros(2),), (torch.full((2,), 90.0),)])


@pytest.mark.parametrize("compute", [lambda v: 1 if v != v else 2, lambda v: 1 if v == v else 2])
def test_a_number_that_is_not_itself(compute):
    """`v != v` is how many ask for NaN; sympy answered it without looking."""
    assert_kept_alive(lambda x: x.sum() * 0 + compute(x.sum().item()), (torch.ones(2),), [(NOT_A_NUMBER,)])


def test_neither_more_nor_less():
    def model(x):
        total = float(x.sum())
        if not total > 0:
            return x * 2
        return x - 1 if total >= 3 else x + 1

    assert_kept_alive(model, (torch.ones(2),), [(NOT_A_NUMBER,), (-torch.ones(2),), (torch.full((2,), 9.0),)])


@pytest.mark.parametrize(
    "counted",
    [
        lambda flag: flag**2,
        lambda flag: 2**flag,
        lambda flag: 3.0 / (flag + 1),
        lambda flag: 7 // (flag + 1) + 5 % (flag + 2),
        lambda flag: 4 >> flag,
        lambda flag: flag & 1,
        lambda flag: (flag | 2) ^ 3,
        lambda flag: abs(flag) + round(flag),
        lambda flag: 5 if flag < 1 else 6,
    ],
    ids="power exponent divided whole shifted and or-xor abs less".split(),
)
def test_a_traced_bool_is_a_number_in_arithmetic(counted):
    def model(x):
        return torch.tensor(counted((x[0] > 0).item()))

    assert_kept_alive(model, (torch.ones(3),), [(-torch.ones(3),)])


def test_a_bool_that_is_divided_by():
    def model(x):
        total = 0.0
        for row in x:
            try:
                total += 1.0 / (row[0] > 0).item()
            except ZeroDivisionError:
                total -= 1
        return torch.tensor(total)

    assert_kept_alive(model, (torch.randn(4, 3),), rows(0, 1, 2, 7), dynamic_shapes=ROWS)


class ByType(nn.Module):
    """Asks for types in a function that decides nothing else, and so is not rewritten."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        table = {torch.Tensor: 10.0, nn.Parameter: 20.0, float: 30.0}
        scale = 2.0 if type(x.sum().item()) is float else 3.0
        return x * scale + table[type(x * 2)] + table[type(self.weight)] + table[type(x.sum().item())]


def test_the_type_of_what_is_traced():
    assert_kept_alive(ByType(), (torch.ones(3),), [(-torch.ones(3),)])
