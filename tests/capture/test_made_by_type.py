"""`torch.Tensor(...)`, `torch.LongTensor(...)` and `x.new(...)` with numbers that only the run knows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.capture.helpers import assert_exported

OTHERS = [(torch.randn(2, 5) * 3,), (torch.randn(1, 1),), (torch.randn(4, 3),)]


class OfSizes(nn.Module):
    def forward(self, x):
        return torch.LongTensor([x.size(0), x.size(1)]), torch.Tensor([x.size(1) / 2, 1]), torch.IntTensor([len(x)])


class OfValues(nn.Module):
    def forward(self, x):
        low, high = x.min().item(), x.max()
        return (
            torch.FloatTensor([low, high]),
            torch.DoubleTensor([[low], [2]]),
            x.new([low, 1]),
            x.new_tensor([high, 3]),
        )


class OfAnOpenList(nn.Module):
    def forward(self, x):
        steps = []
        for i in range(x.size(1)):
            steps += [i * 0.5, i + 1.0]
        return torch.Tensor(steps).view(-1, 2), torch.LongTensor([2 * i for i in range(x.size(0))])


class BySizes(nn.Module):
    def forward(self, x):
        return torch.Tensor(x.size(0), 2).fill_(3), x.new(x.size(1)).zero_(), torch.BoolTensor(x.size()).fill_(True)


class OfPlainNumbers(nn.Module):
    def forward(self, x):
        return x.sum() * torch.Tensor([1, 2]) + torch.FloatTensor(2).zero_() + x.new([3])


@pytest.mark.parametrize("kind", [OfSizes, OfValues, OfAnOpenList, BySizes, OfPlainNumbers])
def test_made_by_calling_the_type(kind):
    assert_exported(kind(), (torch.randn(3, 4),), OTHERS, dynamic_shapes=({0: "n", 1: "m"},))
