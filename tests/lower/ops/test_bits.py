"""The same bits as numbers of another dtype: `x.view(torch.int32)`. All of it is exact."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.lower.through_onnx import check

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
PAIRS = [(one, other) for one, other in itertools.permutations((*INTEGERS, *FLOATS), 2)]


def any_bits(dtype: torch.dtype, rows: int) -> torch.Tensor:
    """Numbers of the dtype with any bits but those of NaN, of which there are many."""
    torch.manual_seed(rows)
    taken = torch.randint(-128, 128, (rows, 16), dtype=torch.int8).view(dtype)
    return torch.nan_to_num(taken, nan=1.0) if dtype.is_floating_point else taken


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_from_one_dtype_to_another(one, other):
    def forward(x):
        seen = x.view(other)
        return seen.isnan(), torch.nan_to_num(seen, nan=2.0) if other.is_floating_point else seen

    check(forward, (any_bits(one, 3),), (any_bits(one, 5),), free={0: {0: "rows"}}, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("floats", "integers"),
    [(torch.float16, torch.int16), (torch.float32, torch.int32), (torch.float64, torch.int64)],
)
def test_the_strange_numbers_there_and_back(floats, integers):
    limits = torch.finfo(floats)
    numbers = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, limits.max, limits.min, limits.tiny, -limits.tiny]
    smallest = limits.smallest_normal * limits.eps
    given = torch.tensor([*numbers, smallest, -smallest, 3 * smallest, 0.1, 1 - limits.eps / 2], dtype=floats)

    def forward(x):
        bits = x.view(integers)
        return bits, bits.view(floats), (-bits).view(floats).abs() > 1

    check(forward, (given,), rtol=0, atol=0)


def test_a_fast_inverse_square_root():
    def forward(x):
        guess = (0x5F3759DF - (x.view(torch.int32) >> 1)).view(torch.float32)
        return guess * (1.5 - 0.5 * x * guess * guess)

    check(forward, (torch.rand(3, 4) + 0.1,), (torch.rand(1, 4) * 9 + 0.1,), free={0: {0: "rows"}})
