"""Integer division at the edges: `x - x % d` wraps near the lowest number, and by -1 the processor gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.edges import INTEGERS, check_edges, edges, pairs

BY_TENSOR: dict[str, Callable[..., Any]] = {
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "floor_divide": torch.floor_divide,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "floor_divide_": lambda x, y: x.clone().floor_divide_(y),
    "remainder_": lambda x, y: x.clone().remainder_(y),
    "fmod_": lambda x, y: x.clone().fmod_(y),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", BY_TENSOR)
def test_by_every_divisor(name: str, dtype: torch.dtype) -> None:
    x, y = pairs(dtype)
    x, y = x[y != 0], y[y != 0]
    check_edges(BY_TENSOR[name], x, y, lengths=(1, 2, 65))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_towards_zero(dtype: torch.dtype) -> None:
    """Eager itself dies of the lowest number of 32 or 64 bits by -1."""
    x, y = pairs(dtype)
    fine = (y != 0) & ~((y == -1) & (x == torch.iinfo(dtype).min))
    check_edges(lambda x, y: torch.div(x, y, rounding_mode="trunc"), x[fine], y[fine], lengths=(1, 2, 65))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_by_numbers(dtype: torch.dtype) -> None:
    for divisor in (1, 2, 7, 100) if dtype is torch.uint8 else (1, 2, 7, 100, -1, -2, -7, -100):
        check_edges(
            lambda x, d=divisor: (x // d, x % d, torch.fmod(x, d), torch.div(x, d, rounding_mode="floor")),
            edges(dtype),
        )
        nonzero = edges(dtype)[edges(dtype) != 0]
        check_edges(lambda x, d=divisor: (d // x, d % x), nonzero)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_divisors_and_multiples(dtype: torch.dtype) -> None:
    """The lowest number has no absolute value; what eager then makes of it has a sign."""
    x, y = pairs(dtype)
    check_edges(torch.gcd, x, y, lengths=(1, 2))
    lowest = torch.iinfo(dtype).min
    fine = (dtype.itemsize < 4) | ((x != lowest) & (y != lowest))  # eager may die of lowest / -1
    check_edges(torch.lcm, x[fine], y[fine])


def test_a_positive_number_divides_in_few_nodes() -> None:
    from tests.lower.through_onnx import model_of

    model = model_of(lambda x: x // 7, (torch.arange(6),))
    assert [n.op_type for n in model.graph if n.op_type != "Constant"] == ["Div", "Mul", "Less", "Cast", "Sub"]
