"""A picture with zeros around it, whose maxima are taken: the runtime must not take them for padding of the pool."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.lower.through_onnx import check

BELOW_ZERO = -torch.rand(2, 3, 8, 8) - 1


class PadInAnArm(nn.Module):
    def forward(self, x):
        padded = F.pad(x, (1, 1, 1, 1))
        return F.max_pool2d(padded, 3, 2) if x.sum() < 0 else padded


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2),
        lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, 1),
        lambda x: F.max_pool2d(F.pad(x, (0, 1, 0, 1)), 2, ceil_mode=True),
        lambda x: F.max_pool1d(F.pad(x[0], (1, 1)), 2),
        lambda x: F.max_pool3d(F.pad(x, (1, 1, 1, 1)), (1, 2, 2)),
        lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-9.0), 3, 2),
        lambda x: F.avg_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, 1, count_include_pad=False),
        nn.Sequential(nn.ZeroPad2d(1), nn.MaxPool2d(3, 2), nn.Conv2d(3, 2, 1)),
        PadInAnArm(),
    ],
    ids="plain padded-twice ceil 1d 3d other-value average layers arm".split(),
)
def test_zeros_around_negative_numbers(forward):
    check(forward, (BELOW_ZERO,), (BELOW_ZERO[:1] * 3,), free={0: {0: "batch"}})
