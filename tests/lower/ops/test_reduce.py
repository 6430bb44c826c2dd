"""Reductions over known and free axes, of nothing, and in the dtype that eager gives."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful
from tests.lower.through_onnx import check

ROWS = {0: {0: "rows"}}
FREE = {0: {0: "rows", 1: "columns"}}

NAMES = "sum mean amax amin prod argmax argmin var std logsumexp".split()


@pytest.mark.parametrize("name", NAMES)
def test_one_axis_kept_or_not_and_all_axes(name):
    function = getattr(torch, name)
    check(
        lambda x: (function(x, 1), function(x, dim=0, keepdim=True)),
        (torch.randn(2, 3),),
        (torch.randn(5, 4),),
        free=FREE,
    )
    if name != "logsumexp":
        check(lambda x: function(x), (torch.randn(2, 3),), (torch.randn(5, 4),), free=FREE)


def test_of_nothing():
    def forward(x):
        return x.sum(0), x.mean(0), x.any(0), x.all(0), x.prod(0), x.mean()

    check(forward, (torch.randn(2, 3),), (torch.randn(0, 3),), free=ROWS)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_and_truth_add_up_in_int64(dtype):
    def forward(x):
        return x.sum(), x.sum(0), x.prod(), x.any(), x.all(1), x.cumsum(0), x.count_nonzero(), x.max()

    check(forward, (torch.randint(0, 3, (2, 3)).to(dtype),))


def test_extremes_with_their_places():
    check(lambda x: (x.max(1), x.min(0), x.max(0, keepdim=True), torch.aminmax(x)), (torch.randn(4, 3),))


def test_spread_with_a_correction():
    def forward(x):
        return x.var(0, correction=0), x.std(1, unbiased=False), torch.var_mean(x, 1), torch.std_mean(x)

    check(forward, (torch.randn(2, 3),), (torch.randn(5, 3),), free=ROWS)


def test_the_variance_of_one_row_is_not_a_number():
    check(lambda x: x.var(0), (torch.randn(3, 2),), (torch.randn(1, 2),), free=ROWS)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, math.inf, -math.inf])
def test_norms(order):
    def forward(x):
        norm = torch.linalg.vector_norm
        return norm(x, order), norm(x, order, 1), norm(x, order, 0, keepdim=True), x.norm(dim=1), F.normalize(x)

    check(forward, (torch.randn(4, 3),))


def test_distances():
    check(
        lambda a, b: (torch.cdist(a, b), torch.cdist(a, b, p=1), torch.dist(a[:3], b)),
        (torch.randn(4, 5), torch.randn(3, 5)),
    )


def test_running_totals():
    def forward(x):
        return x.cumsum(0), x.cumprod(1), x.cumprod(0), x.logcumsumexp(0), x.cummax(0), x.cummin(1), (x > 0).cumsum(1)

    check(forward, (torch.randn(4, 5),), (torch.randn(7, 5),), (torch.randn(0, 5),), free=ROWS)


def test_a_sum_in_another_dtype():
    check(lambda x: (x.sum(dtype=torch.float64), x.mean(0, dtype=torch.float32)), (torch.randint(0, 9, (4, 3)),))


def test_of_a_number():
    check(lambda x: (x.sum(), x.max(), x.argmax(), x.sum(0), x.softmax(0), x.cumsum(0), x.any()), (torch.tensor(2.5),))


@pytest.mark.parametrize(
    "largest",
    [
        lambda x: x.log().amax(-1),
        lambda x: x.sqrt().max(),
        lambda x: (x / x).min(-1),
        lambda x: x.log().argmax(-1),
        lambda x: x.rsqrt().argmin(),
        lambda x: x.masked_fill(x > 9, float("-inf")).softmax(-1).aminmax(dim=-1),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_nan_that_the_model_makes_is_the_largest_and_the_smallest(largest, dtype):
    x = torch.tensor([[1.0, 2.0, 0.5, 3.0], [2.0, -1.0, 0.0, -3.0], [10.0, 10.0, 10.0, 10.0]], dtype=dtype)
    faithful(largest, x)


@pytest.mark.parametrize(
    "layers",
    [
        lambda x: torch.nn.functional.linear(x, torch.eye(4)).relu().argmax(-1),
        lambda x: x.sigmoid().softmax(-1).amax(-1),
        lambda x: x.max(-1)[0],
    ],
)
def test_no_nan_is_looked_for_behind_ordinary_layers(layers):
    program = faithful(layers, torch.randn(3, 4))
    assert "IsNaN" not in [node.op_type for node in program.model.graph]


_WIDE = torch.tensor([0, 1, 2**31, 2**32, -(2**32), -7, 2**33 + 5, -(2**31), 2**31 - 1, 2**62])


@pytest.mark.parametrize(
    "largest",
    [
        lambda x: x.amax(-1),
        lambda x: x.amin(0),
        lambda x: x.amax((0, 2), keepdim=True),
        lambda x: (x.max(1), x.min()),
        lambda x: x.amax((0, 1, 2), keepdim=True),
    ],
)
def test_integers_beyond_32_bits(largest):
    """The runtime's own kernels compare 32 bits of them."""
    faithful(largest, _WIDE[torch.arange(120).reshape(4, 5, 6) * 7 % 10], free=({0, 1, 2},))


def test_norms_of_float64_have_its_digits():
    """An exponent of 1/3 in float32 left eight of them."""
    x = torch.tensor([0.00620109136, 0.3, 2.5], dtype=torch.float64)
    orders = (3, 1.5, 6, 0.9, -3)
    check(lambda x: [torch.linalg.vector_norm(x, order) for order in orders], (x,), rtol=1e-14, atol=0)
    check(lambda x: [torch.linalg.vector_norm(x, order, 0) for order in orders], (x[0],), rtol=1e-14, atol=0)
    check(lambda x, y: torch.cdist(x, y, p=3.0), (x[:, None], x[:, None] + 1), rtol=1e-14, atol=0)
