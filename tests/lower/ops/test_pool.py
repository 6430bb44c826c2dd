"""Pooling with every option, on inputs of any size; eager's own idea of the last window is kept."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful, operators

IMAGE = ({0, 2, 3},)


def image(dtype=torch.float32):
    return torch.randn(2, 3, 8, 9).mul(4).to(dtype)


def unpooled(x):
    values, places = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(values, places, 2, output_size=x.shape[2:])


IMAGES = {
    "max": lambda x: F.max_pool2d(x, 2),
    "max, all options": lambda x: F.max_pool2d(x, (3, 2), stride=2, padding=1, ceil_mode=True),
    "max, dilated": lambda x: F.max_pool2d(x, 3, stride=1, dilation=2),
    "max, with indices": lambda x: F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True),
    "mean": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1),
    "mean, to the last column": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True),
    "mean of what is not padding": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "mean with a divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=2),
    "mean with a divisor, to the last column": lambda x: F.avg_pool2d(x, 2, 3, 1, ceil_mode=True, divisor_override=5),
    "norm": lambda x: F.lp_pool2d(x, 2.0, 3, stride=2),
    "to one mean": lambda x: F.adaptive_avg_pool2d(x, 1),
    "to means": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "to means along one axis": lambda x: F.adaptive_avg_pool2d(x, (None, 5)),
    "to maxima": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    "to maxima, with indices": lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True),
    "resized by area": lambda x: F.interpolate(x, size=(5, x.shape[3] // 2 + 1), mode="area"),
    "back to where the maxima were": lambda x: unpooled(x),
}


@pytest.mark.parametrize("pool", IMAGES.values(), ids=IMAGES)
def test_an_image_of_any_size(pool):
    faithful(pool, image(), free=IMAGE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_the_largest_integers_keep_their_digits(dtype):
    """The runtime has no MaxPool of int64, and float64 would hold 53 bits of it."""
    info = torch.iinfo(dtype)
    x = torch.arange(2 * 3 * 8 * 9).reshape(2, 3, 8, 9).mul(7).remainder(61).sub(30)
    x = torch.where(x > 0, info.max - x, info.min - x).to(dtype)
    holes = dict(stride=2, padding=1, dilation=(1, 2), ceil_mode=True, return_indices=True)
    faithful(lambda x: (F.max_pool2d(x, 3, **holes), F.max_pool2d(x, (2, 3), **holes)), x, free=IMAGE)


LINES = {
    "max": lambda x: F.max_pool1d(x, 3, stride=2, padding=1),
    "max, with indices": lambda x: F.max_pool1d(x, 2, return_indices=True),
    "mean": lambda x: F.avg_pool1d(x, 3, stride=2, padding=1, ceil_mode=True),
    "to means": lambda x: F.adaptive_avg_pool1d(x, 4),
    "to maxima": lambda x: F.adaptive_max_pool1d(x, 4),
    "norm": lambda x: F.lp_pool1d(x, 2.0, 3),
}


@pytest.mark.parametrize("pool", LINES.values(), ids=LINES)
def test_a_sequence_of_any_length(pool):
    faithful(pool, torch.randn(2, 3, 9), free=({0, 2},))


VOLUMES = {
    "max": lambda x: F.max_pool3d(x, 2, ceil_mode=True),
    "mean": lambda x: F.avg_pool3d(x, 2, stride=1),
    "to means": lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)),
    "to maxima": lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True),
}


@pytest.mark.parametrize("pool", VOLUMES.values(), ids=VOLUMES)
def test_a_volume_of_any_size(pool):
    faithful(pool, torch.randn(2, 2, 4, 5, 6), free=({0, 2, 4},))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_in_the_dtype_of_the_tensor(dtype):
    def forward(x):
        return F.max_pool2d(x, 2), F.avg_pool2d(x, 2, padding=1), F.adaptive_avg_pool2d(x, (2, 3))

    faithful(forward, image(dtype), free=IMAGE)


def test_maxima_of_integers():
    faithful(lambda x: F.max_pool2d(x, 2), image(torch.int64))


def test_images_without_a_batch():
    def forward(x):
        return F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (4, 3)), F.adaptive_max_pool2d(x, 3)

    faithful(forward, image()[0], free=({1, 2},))


def test_one_node_where_onnx_has_it():
    assert operators(faithful(lambda x: F.max_pool2d(x, 3, 2, 1), image(), free=IMAGE)) == ["MaxPool"]
    assert operators(faithful(lambda x: F.adaptive_avg_pool2d(x, (4, 3)), image(), free=({0},))) == ["AveragePool"]
