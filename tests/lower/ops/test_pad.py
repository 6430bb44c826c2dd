"""Padding by known, free and negative amounts, in every mode, with every other axis free."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful

IMAGE = ({0, 2, 3},)

CASES = {
    "zeros": lambda x: F.pad(x, (1, 2, 3, 0)),
    "a value, and one side is cut off": lambda x: F.pad(x, (-1, 2), value=1.5),
    "more axes than an image has": lambda x: F.pad(x, (0, 1, 0, 0, 1, 0, 2, 1)),
    "to a multiple of four": lambda x: F.pad(x, (0, -x.shape[3] % 4, 0, -x.shape[2] % 4)),
    "cut by a free amount": lambda x: F.pad(x, (0, 0, -(x.shape[2] // 2), 0)),
    "as much as another axis is long": lambda x: F.pad(x, (x.shape[2], 0)),
    "reflect": lambda x: F.pad(x, (2, 1, 0, 1), mode="reflect"),
    "reflect a free amount": lambda x: F.pad(x, (x.shape[3] // 2, 0, 0, 0), mode="reflect"),
    "replicate": lambda x: F.pad(x, (2, 5, 0, 1), mode="replicate"),
    "replicate, and one side is cut off": lambda x: F.pad(x, (-1, 1, 0, -1), mode="replicate"),
    "circular": lambda x: F.pad(x, (2, 1, 1, 0), mode="circular"),
    "circular, a free amount": lambda x: F.pad(x, (x.shape[3] // 2, 0, 0, 1), mode="circular"),
    "reflect, and one side is cut off": lambda x: F.pad(x, (-1, 1, 2, -1), mode="reflect"),
}


@pytest.mark.parametrize("padding", CASES.values(), ids=CASES)
def test_an_image_of_any_size(padding):
    faithful(padding, torch.randn(2, 3, 5, 6), free=IMAGE)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float64])
def test_in_the_dtype_of_the_tensor(dtype):
    x = torch.randn(2, 5).mul(3).to(dtype)
    faithful(lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1), value=1)), x, free=({0, 1},))


def test_an_integer_takes_the_whole_part_of_the_value():
    faithful(lambda x: F.pad(x, (1, 1), value=1.7), torch.arange(3))


@pytest.mark.parametrize(
    "pad", [torch.nn.ReflectionPad1d(2), torch.nn.ReplicationPad1d((3, 1)), torch.nn.CircularPad1d(2)]
)
def test_one_axis_without_a_batch(pad):
    faithful(pad, torch.randn(3, 7), free=({1},))


@pytest.mark.parametrize(
    "pad", [torch.nn.ReflectionPad3d(1), torch.nn.ReplicationPad3d(2), torch.nn.ConstantPad3d(1, -1.0)]
)
def test_volumes(pad):
    faithful(pad, torch.randn(2, 2, 3, 4, 5), free=({0, 2, 4},))


def test_a_circle_with_one_side_cut_off():
    faithful(lambda x: F.pad(x, (-1, 1, 0, 0), mode="circular"), torch.randn(2, 3, 5, 6), free=({0},))
