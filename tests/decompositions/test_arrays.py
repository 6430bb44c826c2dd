"""numpy arrays of sizes that are known only when the model runs: anchors, grids and tables of positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.capture.helpers import assert_exported, refusal

OTHERS = [(torch.randn(sizes),) for sizes in ((1, 7, 2), (2, 1, 9), (1, 4, 4))]


def corners(scale):
    """A plain array, of no traced number."""
    return np.array([[-1.0, -1.0, 1.0, 1.0], [-2.0, -0.5, 2.0, 0.5]]) * scale


class Anchors(nn.Module):
    def forward(self, x):
        height, width = (np.array(x.shape[1:]) + 1) // 2
        across, down = np.meshgrid(np.arange(0, width) * 4, (np.arange(height) + 0.5) * 4)
        shifts = np.vstack((across.ravel(), down.ravel(), across.ravel(), down.ravel())).transpose()
        boxes = shifts.reshape((-1, 1, 4)) + corners(3).reshape((1, 2, 4))
        return torch.from_numpy(boxes.reshape((-1, 4)).astype(np.float32)) + x.mean()


class Positions(nn.Module):
    def forward(self, x):
        angles = np.arange(x.shape[1])[:, np.newaxis] / np.power(100, np.arange(4)[np.newaxis, :] / 4)
        angles[:, 0::2] = np.sin(angles[:, 0::2])
        angles[:, 1::2] = np.cos(angles[:, 1::2])
        return torch.tensor(angles, dtype=torch.float32), torch.as_tensor(angles)


class Masks(nn.Module):
    def forward(self, x):
        n = x.size(1)
        later = np.triu(np.ones((n, n)), k=1).astype("uint8")
        return torch.from_numpy(later) == 0, torch.Tensor(np.eye(n)), torch.from_numpy(np.full((n, 2), 3))


class Places(nn.Module):
    def forward(self, x):
        places = np.linspace(0, x.shape[1] - 1, 3).astype(int)
        steps = np.arange(0.5, x.shape[2], 2)
        ones = np.zeros((x.shape[2],), dtype=np.float32) + 1
        return x[:, torch.LongTensor(places)], torch.from_numpy(steps), x + torch.tensor(ones + 1)


@pytest.mark.parametrize("kind", [Anchors, Positions, Masks, Places])
def test_arrays_of_sizes(kind):
    assert_exported(kind(), (torch.randn(2, 5, 6),), OTHERS, dynamic_shapes=({0: "n", 1: "h", 2: "w"},))


def test_numpy_and_torch_are_as_before_afterwards():
    before = torch.from_numpy
    assert_exported(Masks(), (torch.randn(2, 5, 6),), dynamic_shapes=({1: "h"},))
    assert torch.from_numpy is before
    assert torch.equal(torch.from_numpy(np.arange(3)), torch.arange(3))


def test_an_array_of_a_tensors_values_is_still_told():
    class Leaves(nn.Module):
        def forward(self, x):
            return x + torch.from_numpy(np.tanh(x.numpy()))

    assert [found.code for found in refusal(Leaves(), (torch.randn(3),)).diagnostics] == ["TP204"]
