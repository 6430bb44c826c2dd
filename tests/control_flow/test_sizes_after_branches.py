"""A size that two arms leave otherwise written, and that is the same in both by what the test says."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.lower.through_onnx import check


class Patches(nn.Module):
    """As timm's CrossViT: pictures of any size are scaled to the one that the positions are for."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches, self.position = nn.Conv2d(2, 4, 4, stride=4), nn.Parameter(torch.randn(1, 4, 4))

    def scaled(self, x, size):
        height, width = x.shape[-2:]
        if height != size[0] or width != size[1]:
            x = F.interpolate(x, size=size, mode="nearest")
        return x

    def forward(self, x):
        x = self.scaled(x, (8, 8))
        height, width = x.shape[-2:]
        torch._assert(height == 8, f"a picture of {height} rows")
        torch._assert(width == 8, f"a picture of {width} columns")
        return self.patches(x).flatten(2).transpose(1, 2) + self.position


def test_what_is_scaled_has_the_size_where_it_is_not_scaled_too():
    pictures = [(torch.randn(b, 2, h, w),) for b, h, w in ((2, 12, 8), (1, 8, 8), (3, 8, 5), (2, 17, 3))]
    for first in (0, 1):
        model = check(Patches().eval(), pictures[first], *pictures, free={0: {0: "b", 2: "h", 3: "w"}})
        assert str(model.graph.outputs[0].shape) == "[b,4,4]"


def test_the_size_of_the_other_where_they_are_equal():
    def forward(x, y):
        z = x * 2 if x.shape[0] == y.shape[0] else y * 3
        return z + y

    others = [(torch.randn(n), torch.randn(m)) for n, m in ((4, 4), (0, 0), (1, 1), (2, 5), (5, 1))]
    model = check(forward, (torch.randn(6), torch.randn(3)), *others, free={0: {0: "n"}, 1: {0: "m"}})
    assert str(model.graph.outputs[0].shape) == "[m]"


def test_sizes_that_differ_stay_open():
    """The test speaks of another size than the one that the arms leave."""

    def forward(x, y):
        z = x if x.shape[1] == y.shape[0] else x[:, :1]
        return z * 2

    others = [(torch.randn(2, n), torch.randn(m)) for n, m in ((4, 4), (3, 1), (0, 0), (5, 2))]
    check(forward, (torch.randn(2, 3), torch.randn(3)), *others, free={0: {1: "n"}, 1: {0: "m"}})
