"""Sizes that pass through tensors, and sizes that only the run tells, in what torch's kernels ask about them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import trueport
from tests.capture.helpers import assert_exported

SIZES = {"x": {0: Dim("b", min=1, max=64), 1: Dim("t", min=4, max=64)}}


def sized(model, shape):
    """The exported model is right on other sizes too, and declares this shape of its output."""
    others = [(torch.randn(1, 7),), (torch.randn(5, 10),)]
    program = assert_exported(model, (torch.randn(4, 16),), others, dynamic_shapes=SIZES)
    assert program.report.outputs[0].shape == shape


def test_division_of_a_size_by_torch():
    def model(x):
        n = torch.div(x.size(1), 2, rounding_mode="trunc")
        return x[:, : n * 2].view(x.size(0), n, 2)

    sized(model, ("b", "(t//2)", "2"))


def test_a_shape_as_a_tensor():
    """`torch.tensor(x.shape) // 2` fits what a stride of 2 gives: torch knows that the two sizes are one."""

    def model(x):
        height, width = (torch.tensor(x.shape) // 2).tolist()
        return F.interpolate(x[None, None], size=(height, width)) + F.max_pool2d(x[None, None], 2)

    others = [(torch.randn(9, 7),), (torch.randn(5, 10),)]
    shapes = {"x": {0: Dim("b", min=2, max=64), 1: Dim("t", min=4, max=64)}}
    assert_exported(model, (torch.randn(4, 16),), others, dynamic_shapes=shapes)


def test_arithmetic_of_sizes_in_tensors():
    def model(x):
        sizes = torch.stack([torch.tensor(x.shape[0]), torch.tensor(x.shape[1])])
        count = int(sizes.prod()) + sizes[1].item() % 3 - int(sizes[:1].sum())
        return torch.ones(count)

    sized(model, ("b*t - b + (Mod(t, 3))",))


def test_a_size_by_way_of_floats_gets_a_plain_name():
    def model(x):
        n = int(torch.ceil(torch.tensor(x.shape[1] / 2)))
        return F.pad(x, (0, n * 2 - x.shape[1])).view(-1, n, 2).sum(-1)

    program = assert_exported(model, (torch.randn(4, 16),), [(torch.randn(3, 7),)], dynamic_shapes=SIZES)
    assert program.report.outputs[0].shape[1].startswith("computed_")


class Chosen(nn.Module):
    """`step` on the rows with a positive sum: how many there are, only the values tell."""

    def __init__(self, step):
        super().__init__()
        self.step, self.norm = step, nn.BatchNorm1d(16)

    def forward(self, x):
        return self.step(self, x[x.sum(1) > 0])


STEPS = {
    "batch norm": lambda m, y: m.norm(y),
    "roll": lambda m, y: y.roll(1, 0),
    "view": lambda m, y: y.view(y.shape[0], 4, 4),
    "view of the rest": lambda m, y: y.t().contiguous().view(4, 4, -1),
    "view of pairs": lambda m, y: y[: y.shape[0] // 2 * 2].view(y.shape[0] // 2, 2, 16).mean(1),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_kernels_that_ask_about_a_size_which_only_the_run_tells(step):
    """Also where no row, and where one row is chosen: torch's kernels are told that the size is neither 0 nor 1."""
    model = Chosen(step).eval()
    none, one = -torch.ones(3, 16), torch.cat([-torch.ones(3, 16), torch.ones(1, 16)])
    program = trueport.export(model, (torch.randn(6, 16),), dynamic_shapes={"x": {0: Dim("b", min=1, max=64)}})
    for given in (none, one, torch.randn(9, 16)):
        torch.testing.assert_close(program(given), model(given), atol=1e-5, rtol=1e-5)
