"""Sums of products of integers wrap around as eager's do, beyond what a float holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.lower.through_onnx import check

WHOLE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "products": (lambda a, b: (a @ b, torch.mm(a, b)), ((3, 4), (4, 5))),
    "added products": (torch.addmm, ((3, 5), (3, 4), (4, 5))),
    "products of batches, added": (torch.addbmm, ((3, 5), (2, 3, 4), (2, 4, 5))),
    "a scaled sum of products": (
        lambda c, a, b: torch.addbmm(c, a, b, beta=3, alpha=2),
        ((3, 5), (2, 3, 4), (2, 4, 5)),
    ),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), ((2, 3, 6, 7), (4, 3, 3, 2), (4,))),
    "in groups": (lambda x, w: F.conv1d(x, w, groups=2, dilation=2), ((2, 4, 9), (4, 2, 3))),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        ((2, 3, 4, 5), (3, 4, 3, 3), (4,)),
    ),
    "sums": (lambda x: (x.sum(), x.sum(1), x.cumsum(1)), ((3, 70),)),
    "trace": (torch.trace, ((4, 4),)),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_sums_of_products(name: str, dtype: torch.dtype) -> None:
    function, shapes = WHOLE[name]
    info, random = torch.iinfo(dtype), torch.Generator().manual_seed(0)
    operands = tuple(torch.randint(info.min, info.max, shape, generator=random, dtype=dtype) for shape in shapes)
    try:
        function(*operands)
    except (RuntimeError, NotImplementedError):
        pytest.skip("eager has none of this dtype")
    check(function, operands)


POOLS = {
    "1-d": (lambda x: F.avg_pool1d(x, 3, stride=2, padding=1), (2, 3, 9)),
    "2-d": (lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), (2, 3, 6, 7)),
    "3-d": (lambda x: F.avg_pool3d(x, 2, divisor_override=3), (2, 2, 4, 4, 6)),
}


@pytest.mark.parametrize("name", POOLS)
def test_means_of_windows(name: str) -> None:
    pool, shape = POOLS[name]
    random = torch.Generator().manual_seed(0)
    x = torch.randint(-(2**62), 2**62, shape, generator=random)
    check(pool, (x,))
