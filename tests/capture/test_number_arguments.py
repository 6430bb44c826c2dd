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


BY_TENSOR = {
    "steps": lambda x, n: torch.linspace(0.5, n - 0.5, n),
    "every n-th": lambda x, n: (torch.arange(1, 9, n), x[:, ::n], x[1:, 2 :: n + 1]),
    "pieces of a size": lambda x, n: x.split(n, dim=1)[0],
    "so many pieces": lambda x, n: x.chunk(n, dim=1)[-1],
    "classes": lambda x, n: F.one_hot(x[0].abs().long().clamp(max=1), n.clamp(min=1) + 1),
    "a window": lambda x, n: torch.hann_window(n),
    "overlapping pieces": lambda x, n: x.unfold(1, n, 1),
    "indices of a triangle": lambda x, n: torch.tril_indices(n, n),
    "a finer picture": lambda x, n: F.pixel_shuffle(x.repeat(1, 18).reshape(1, 144, 2, 2), n),
    "means of windows": lambda x, n: F.avg_pool1d(x, n),
    "a size": lambda x, n: x.expand(torch.Size([n, 4, 8])),
    "numbers of a new tensor": lambda x, n: (torch.tensor([n, n + 1]), torch.tensor([[n, 2], [n * 0.5, 1]])),
    "a slope": lambda x, n: (F.leaky_relu(x, n * 0.1), F.elu(x, n * 0.5)),
    "a scale": lambda x, n: F.scaled_dot_product_attention(x, x, x, scale=n * 0.3),
}


@pytest.mark.parametrize("name", BY_TENSOR)
def test_a_tensor_of_one_value_where_torch_takes_a_number(name):
    """Sizes of feature maps come as tensors: `for h, w in spatial_shapes: torch.linspace(0.5, h - 0.5, h)`."""

    class Model(nn.Module):
        def forward(self, x, n):
            return BY_TENSOR[name](x, n)

    model = Model()
    accepted = [args for args in [(torch.randn(4, 8), torch.tensor(n)) for n in (1, 3, 4)] if runs(model, args)]
    assert accepted
    assert_exported(model, (torch.randn(4, 8), torch.tensor(2)), accepted)


def test_a_list_of_tensors_of_one_value_keeps_their_dtype():
    def model(a, b):
        return torch.tensor([a, b]), torch.tensor([a, 1]), torch.tensor([[b], [2]])

    small = torch.tensor(3, dtype=torch.int32), torch.tensor(1.5, dtype=torch.float64)
    assert_exported(model, small, [(torch.tensor(7, dtype=torch.int32), torch.tensor(0.25, dtype=torch.float64))])


def test_writing_every_nth_item_is_refused_with_a_way_that_works():
    def model(x, n):
        x = x.clone()
        x[::n] = 0.0
        return x

    def mended(x, n):
        x = x.clone()
        x[torch.arange(0, x.shape[0], n)] = 0.0
        return x

    (found,) = [each for each in refusal(model, (torch.randn(6), torch.tensor(2))).diagnostics if each.is_error]
    assert found.code == "TP401" and "torch.arange" in found.fix
    assert_exported(mended, (torch.randn(6), torch.tensor(2)), [(torch.randn(6), torch.tensor(4))])
