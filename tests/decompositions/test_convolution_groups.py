"""As many groups as a free size says: each example of a batch has weights of its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import trueport
from tests.lower.ops.faithful import faithful

KERNEL = torch.outer(torch.tensor([1.0, 2, 1]), torch.tensor([1.0, 2, 1])) / 16


def test_weights_of_each_example():
    """StyleGAN's modulated convolution."""

    def forward(x, weight):
        b, c, h, w = x.shape
        made = F.conv2d(x.reshape(1, b * c, h, w), weight.reshape(b * 5, c, 3, 3), padding=1, groups=b)
        return made.view(b, 5, h, w)

    faithful(forward, torch.randn(2, 3, 6, 5), torch.randn(2, 5, 3, 3, 3), free=({0, 2, 3}, {0}))


def test_weights_of_each_example_backwards():
    def forward(x, weight):
        b, c, h, w = x.shape
        out = F.conv_transpose2d(
            x.reshape(1, b * c, h, w), weight.reshape(b * c, 4, 3, 3), stride=2, padding=1, output_padding=1, groups=b
        )
        return out.view(b, 4, *out.shape[2:])

    faithful(forward, torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 3, 3), free=({0, 2, 3}, {0}))


def test_a_kernel_for_each_channel():
    def forward(x):
        c = x.shape[1]
        return F.conv2d(x, KERNEL.expand(c, 1, 3, 3), torch.ones(c), stride=2, padding=1, groups=c)

    faithful(forward, torch.randn(2, 3, 7, 6), free=({0, 1, 2, 3},))


@pytest.mark.parametrize("settings", [{}, {"stride": 2}, {"padding": 2, "dilation": 2}])
def test_lines(settings):
    def forward(x, weight):
        b = x.shape[0]
        made = F.conv1d(x.reshape(1, -1, x.shape[2]), weight.reshape(-1, 3, 3), groups=b, **settings)
        return made.reshape(b, 4, -1)

    faithful(forward, torch.randn(2, 3, 9), torch.randn(2, 4, 3, 3), free=({0}, {0}))


def test_lines_backwards():
    def forward(x, weight):
        b = x.shape[0]
        made = F.conv_transpose1d(x.reshape(1, -1, x.shape[2]), weight.reshape(-1, 4, 3), stride=2, groups=b)
        return made.reshape(b, 4, -1)

    faithful(forward, torch.randn(2, 3, 5), torch.randn(2, 3, 4, 3), free=({0}, {0}))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_as_long_as_a_free_size_says(axes):
    """A decoder that gives back the size that its encoder was given: `self.up(x, output_size=x.size())`."""
    down = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](1, 2, 3, stride=2, padding=1)
    up = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[axes - 1](2, 1, 3, stride=2, padding=1)

    def forward(x):
        return up(down(x), output_size=x.size())

    faithful(forward, torch.randn(1, 1, *[6] * axes), free=({0, 2},))


def test_a_longer_end_that_only_the_bias_reaches():
    up = nn.ConvTranspose1d(2, 1, 2, stride=3)

    def forward(x, like):
        return up(x, output_size=like.shape)

    rows = torch.export.Dim("rows", min=1)
    like = torch.randn(1, 1, 11)  # at least as long as (4 - 1) * 3 + 2, and at most two more
    program = trueport.export(forward, (torch.randn(1, 2, 4), like), dynamic_shapes=(None, {2: 1 * rows}))
    assert program.report.verified
