"""A Python number in the call stays an input of the model, whatever torch itself asks about it on the way."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.helpers import assert_exported, refusal
from trueport.capture.assumptions import numbers_that_break
from trueport.capture.trace import capture
from trueport.examine import run_eager
from trueport.load.request import make_job
from trueport.lower.table import is_leaf

OPERATORS = {
    "padding": lambda x, k: F.pad(x, (k // 2, k)),
    "a piece": lambda x, k: x.narrow(1, k, 2),
    "one row": lambda x, k: x.select(1, k),
    "reshaping": lambda x, k: x.reshape(k, -1).mean(0),
    "the k-th largest": lambda x, k: x.kthvalue(k, 1).values,
    "overlapping pieces": lambda x, k: x.unfold(1, k, 1),
    "a longer or shorter transform": lambda x, k: torch.fft.rfft(x, n=4 * k).abs(),
    "a finer picture": lambda x, k: F.pixel_shuffle(x.repeat(1, 18).reshape(1, 144, 2, 2), k),
    "a coarser picture": lambda x, k: F.pixel_unshuffle(x.repeat(9, 2).reshape(1, 1, 24, 24), k),
    "means of windows": lambda x, k: F.avg_pool1d(x, k, stride=1, padding=k // 2),
    "means without the padding": lambda x, k: F.avg_pool1d(x, k, stride=1, padding=k // 2, count_include_pad=False),
    "means of halves": lambda x, k: F.avg_pool1d(x.half(), k),
    "maxima of windows": lambda x, k: F.max_pool1d(x, k, 1, k // 2),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_number_in_an_operator(name):
    class Model(nn.Module):
        def forward(self, x, k: int):
            return OPERATORS[name](x, k)

    given = [(torch.randn(4, 8), k) for k in (1, 3)]
    model = Model()
    accepted = [args for args in given if runs(model, args)]
    assert accepted
    assert_exported(model, (torch.randn(4, 8), 2), accepted)


def runs(model, args):
    try:
        model(*args)
    except (RuntimeError, ValueError):
        return False
    return True


class Pyramid(nn.Module):
    """Two windows per axis, whatever the picture's size: the kernel, the step and the padding follow from it."""

    def forward(self, x):
        height, width = x.shape[2:]
        kernel = math.ceil(height / 2), math.ceil(width / 2)
        padding = tuple((2 * k - n + 1) // 2 for k, n in zip(kernel, (height, width), strict=True))
        largest = F.max_pool2d(x, kernel, stride=kernel, padding=padding)
        return largest, F.avg_pool2d(x, kernel, stride=kernel, padding=padding)


def test_pooling_with_a_kernel_that_follows_from_a_free_size():
    assert_exported(
        Pyramid(),
        (torch.randn(2, 3, 7, 9),),
        [(torch.randn(1, 3, 12, 5),), (torch.randn(1, 3, 4, 4),)],
        dynamic_shapes=({0: "batch", 2: "height", 3: "width"},),
    )


def test_a_number_that_chooses_the_axis_is_refused():
    class Model(nn.Module):
        def forward(self, x, k: int):
            return x.sum(k - 2)

    (found,) = refusal(Model(), (torch.randn(4, 8), 2)).diagnostics
    assert found.code == "TP205"


def test_which_numbers_break_a_decision():
    class Model(nn.Module):
        def forward(self, x, k: int):
            return x.sum(k - 2)

    job = make_job(Model(), (torch.randn(4, 8), 2))
    run_eager(job, [leaf.value for leaf in job.leaves])
    graph = capture(job, is_leaf)
    broken = [numbers_that_break(graph, assumption) for assumption in graph.assumptions]
    assert any(numbers and {"k": 3} in numbers for numbers in broken)
    assert not any(numbers and {"k": 2} in numbers for numbers in broken)
