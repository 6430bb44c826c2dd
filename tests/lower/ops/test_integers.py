"""Powers and shifts of integers: exact to the last bit, and wrapping around as eager does."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.faithful import faithful


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_powers(dtype):
    base = torch.tensor([0, 1, 3, 7, 15], dtype=dtype)
    faithful(lambda x: (x**5, 3**x, x ** torch.arange(5, dtype=dtype)), base, free=(None,))


def test_a_power_beyond_what_float64_holds():
    program = faithful(lambda x, y: x**y, torch.tensor([3, 5, -7]), torch.tensor([39, 27, 22]))
    assert program(torch.tensor([3, 5, -7]), torch.tensor([39, 27, 22])).tolist() == [3**39, 5**27, 7**22]


def test_a_negative_exponent():
    faithful(lambda x, y: x**y, torch.tensor([1, -1, -1, 2]), torch.tensor([-1, -2, -3, -1]))


def test_shifts_by_more_bits_than_there_are():
    amounts = torch.tensor([0, 1, 62, 63, 64])
    faithful(lambda x: (x << amounts, x >> amounts), torch.tensor([-5, 5, -1, 3, -7]))
