"""Elementwise operators and orders at the edges of each dtype; what differs by design is in `lower/by_design.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lower.edges import FLOATS, INTEGERS, check_edges, edges, pairs
from trueport.lower.by_design import BY_DESIGN

NAN, INF = math.nan, math.inf

ONE: dict[str, Callable[..., Any]] = {
    "sign": torch.sign,
    "rounding": lambda x: (x.round(), x.floor(), x.ceil()),
    "trunc": torch.trunc,
    "frac": torch.frac,
    "cut off": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    "relu": lambda x: (x.relu(), F.relu6(x), F.leaky_relu(x), F.hardtanh(x)),
    "thresholds": lambda x: (F.threshold(x, 1, 20), F.hardshrink(x), F.softshrink(x)),
    "log sigmoid": lambda x: F.logsigmoid(x) > -1e-30,
    "what kind": lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf(), x.signbit()),
    "no NaN": lambda x: (x.nan_to_num(), x.nan_to_num(1.0, 2.0, 3.0)),
    "compared": lambda x: (x > 1, x >= 1, x < 1, x <= 1, x == 1, x != 1, x.logical_not()),
    "roots": lambda x: (x.sqrt(), x.reciprocal(), x.square()),
}


WITHOUT_SIGN = ("relu", "thresholds", "no NaN", "trunc", "frac", "cut off")
"""The runtime's Max, Where and Sign do not keep that of a zero."""


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ONE)
def test_floats(name: str, dtype: torch.dtype) -> None:
    check_edges(ONE[name], edges(dtype), lengths=(0, 1, 2, 65), signed_zeros=name not in WITHOUT_SIGN)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_pairs_of_floats(dtype: torch.dtype) -> None:
    few = edges(dtype)[::2]
    x, y = (side.reshape(-1) for side in torch.meshgrid(few, few, indexing="ij"))
    check_edges(
        lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), x < y, x == y),
        x,
        y,
        lengths=(1, 2, 65),
        signed_zeros=False,
    )
    check_edges(lambda x, y: (torch.div(x, y, rounding_mode="trunc"), torch.isclose(x, y)), x, y, signed_zeros=False)
    check_edges(torch.nextafter, x, y, rtol=0, atol=0, signed_zeros=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_quotients_of_half_precision_are_rounded_as_eager_does(dtype: torch.dtype) -> None:
    """By a tensor at every step, by one number at the end: 4096 // -0.75 of float16 is -5460 or -5464."""
    few = edges(dtype)[::3]
    few = few[few.isfinite()]
    x, y = (side.reshape(-1) for side in torch.meshgrid(few, few, indexing="ij"))
    modes = ("floor", "trunc")
    check_edges(lambda x, y: [torch.div(x, y, rounding_mode=mode) for mode in modes], x, y, rtol=0, signed_zeros=False)
    for number in (-0.75, 0.1, 255.0):
        check_edges(
            lambda x, number=number: [torch.div(x, number, rounding_mode=mode) for mode in modes],
            edges(dtype)[edges(dtype).isfinite()],
            rtol=0,
            signed_zeros=False,
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_running_products_come_back_from_infinity(dtype: torch.dtype) -> None:
    most = torch.finfo(dtype).max
    x = torch.tensor([[most, 4, 0.125, 0.5, 3], [1.01, 1.01, 1.01, 1.01, 1.01]], dtype=dtype)
    check_edges(lambda x: x.cumprod(1), x, rtol=1e-6 if dtype is torch.float32 else 0)


def test_running_products_of_complex_numbers_come_back_from_infinity() -> None:
    x = torch.tensor([[1e30, 1.0], [1e30, 2.0], [1e-30, 0.0], [2.0, 1.0]])
    check_edges(lambda x: torch.view_as_real(torch.view_as_complex(x).cumprod(0)), x, rtol=1e-6)


def test_gamma_functions_at_their_poles_and_beside_zero() -> None:
    x = torch.tensor([-4, -3, -100, -4.5, 5e-324, -5e-324, -1e-300, -1e300, -1.7e308, -0.5, 0], dtype=torch.float64)
    check_edges(torch.lgamma, x, rtol=1e-12)
    check_edges(lambda x: torch.polygamma(1, x), x[:4], rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_way_between_two_numbers_ends_at_the_second(dtype: torch.dtype) -> None:
    """However far the first is away."""
    few = edges(dtype)[::9]
    few = few[few.isfinite() & (few.abs() < 1e4)]
    shares = torch.tensor([0, 0.25, 0.5, 0.75, 1, 1.5, -1], dtype=dtype)
    x, y, share = (side.reshape(-1) for side in torch.meshgrid(few, few, shares, indexing="ij"))
    check_edges(torch.lerp, x, y, share, lengths=(0, 1, 65), signed_zeros=False)
    check_edges(lambda x, y: [torch.lerp(x, y, each) for each in (0.25, 1, -1.5)], x, y, signed_zeros=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_logarithms_are_exact_at_powers(dtype: torch.dtype) -> None:
    """`log2(x).floor()` is how many bits a number has."""
    two = 2.0 ** torch.arange(-30, 60, dtype=dtype)
    ten = torch.tensor([10.0**k for k in range(-5, 11)], dtype=dtype)
    check_edges(torch.log2, two, lengths=(1, 2, 65), rtol=0, atol=0)
    check_edges(torch.log10, ten, rtol=0, atol=0)
    check_edges(lambda x: torch.log2(x).floor(), torch.arange(1, 5000).to(dtype), rtol=0, atol=0)
    check_edges(lambda x: (x.log2(), x.log10(), torch.acosh(x)), edges(dtype))


def test_half_precision_keeps_the_digits_of_pi() -> None:
    check_edges(torch.sinc, edges(torch.float16), atol=1e-3, signed_zeros=False)


def test_the_bounds_of_logit_are_those_of_the_dtype() -> None:
    for dtype in FLOATS:
        check_edges(lambda x: torch.logit(x, 1e-3), edges(dtype), atol=0.1)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_that_are_close(dtype: torch.dtype) -> None:
    check_edges(torch.isclose, *pairs(dtype))
    check_edges(lambda x, y: torch.isclose(x, y, rtol=0, atol=0, equal_nan=True), *pairs(dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype: torch.dtype) -> None:
    x, y = pairs(dtype)
    check_edges(lambda x, y: (x << y, x >> y), x, y, lengths=(1, 2, 65))


@pytest.mark.parametrize(
    ("dtype", "number"), [(torch.uint8, -1), (torch.uint8, 300), (torch.int8, 200), (torch.int32, 2**40)]
)
def test_a_number_beyond_the_dtype_wraps_around(dtype: torch.dtype, number: int) -> None:
    """As in eager, which even compares with what is left of it."""
    check_edges(lambda x: (x + number, x * number, number - x, x < number, x >= number, x == number), edges(dtype))


ROWS = torch.tensor(
    [
        [4.0, 1.5, -7.0, 3.0, 0.0, 2.0],
        [NAN, 1.5, -7.0, 3.0, NAN, 2.0],
        [4.0, INF, NAN, -INF, 0.0, INF],
        [NAN] * 6,
        [-INF] * 6,
        [NAN, INF, -INF, NAN, -INF, 1.0],
        [2.0, 2.0, 1.0, 1.0, 2.0, NAN],
    ],
    dtype=torch.float64,
)
ORDERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sort": lambda x: (x.sort(dim=-1, stable=True), x.sort(dim=0, stable=True)),
    "downwards": lambda x: x.sort(dim=-1, stable=True, descending=True),
    "argsort": lambda x: x.argsort(dim=-1, stable=True),
    "topk": lambda x: (x.topk(3).values, x.topk(2, largest=False).values),
    "median": lambda x: (x.median(), x.median(1).values, x.median(1, keepdim=True).values, x.nanmedian(1).values),
    "kthvalue": lambda x: (x.kthvalue(1, 1).values, x.kthvalue(4, 1).values),
    "running": lambda x: (x.cummax(1), x.cummin(1), x.cummax(0)),
    "unique": lambda x: torch.unique(x, return_counts=True),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ORDERS)
def test_orders_with_nan(name: str, dtype: torch.dtype) -> None:
    """NaN is above infinity, in eager; no other number may move for it."""
    check_edges(ORDERS[name], ROWS.to(dtype), signed_zeros=False)


def test_the_median_names_the_first_nan() -> None:
    check_edges(lambda x: x.median(1).indices, ROWS[[1, 2, 5]].float())


def test_rows_of_nothing_but_minus_infinity() -> None:
    check_edges(lambda x: (x.softmax(1), x.log_softmax(1), x.logsumexp(1)), ROWS.float())


def test_what_differs_by_design_is_documented() -> None:
    written = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    assert "## What differs by design" in written
    for each in BY_DESIGN:
        assert each.differs in written and each.why in written
