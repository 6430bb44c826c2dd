"""A number of the loop among other indices: eager selects by it first, and indexes what is left."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import ROWS, assert_kept_alive

PLACES = torch.tensor([0, 2])
READ = {
    "one tensor": lambda x, i: x[i, PLACES],
    "a slice between": lambda x, i: x[i, :, PLACES],  # in NumPy the axis of PLACES would come first
    "an ellipsis between": lambda x, i: x[i, ..., PLACES],
    "two tensors": lambda x, i: x[i, torch.arange(3), PLACES[i % 2]],
    "behind a tensor": lambda x, i: x[PLACES, i % 3],
    "between tensors": lambda x, i: x[PLACES, i % 3, PLACES],
    "behind a slice": lambda x, i: x[:2, i % 2, PLACES],
    "a list": lambda x, i: x[i, [0, 1]],
    "a new axis": lambda x, i: x[i, None, PLACES],
    "a mask of two axes": lambda x, i: x[i, x[i] > 0].sum(),
    "behind a mask": lambda x, i: x[x[:, 0, 0] > -9, i % 3].sum(0),
    "behind an ellipsis": lambda x, i: x[..., i % 3, PLACES].sum(0),
}


def _set(y, i):
    y[i, PLACES] = 0


def _add(y, i):
    y[i, :, PLACES] += 1


def _exchange(y, i):
    y[i, [0, 1]] = y[i, [1, 0]]


def _mask(y, i):
    y[i, y[i] > 0] = 0


def _behind(y, i):
    y[PLACES, i % 3] = y[PLACES, i % 3] * 2


def rows(*counts):
    example, *others = [(torch.randn(n, 3, 4),) for n in counts]
    return example, others


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_read(read):
    def forward(x):
        total = 0
        for i in range(x.shape[0]):
            total = total + read(x, i)
        return total

    assert_kept_alive(forward, *rows(5, 3, 8), dynamic_shapes=ROWS)


@pytest.mark.parametrize("write", [_set, _add, _exchange, _mask, _behind])
def test_written(write):
    def forward(x):
        y = x.clone()
        for i in range(x.shape[0]):
            write(y, i)
        return y

    assert_kept_alive(forward, *rows(5, 3, 8), dynamic_shapes=ROWS)


def _fraction(x):
    """As metrics guard their division."""
    total, count = x.sum(), (x > 0).sum()
    score, valid = torch.ones_like(total), count != 0
    score[valid] = total[valid] / count[valid]
    score[~valid & (total < -3)] = -1.0
    return score


def _rows_or_none(x):
    return x[x.sum() > 0], x[:, x.sum() > 0, 0], x[..., x.sum() < 0, :2]


def _cleared(x):
    y = x.clone()
    y[x.sum() > 0] = 0
    y[1:, x.sum() < 0, 0] += 1
    return y


@pytest.mark.parametrize("model", [_fraction, _rows_or_none, _cleared])
def test_a_mask_of_no_axes(model):
    others = [(torch.randn(n, 3, 4).abs() * sign,) for n in (3, 5) for sign in (1, -1)]
    assert_kept_alive(model, (torch.ones(4, 3, 4),), [*others, (torch.zeros(2, 3, 4),)], dynamic_shapes=ROWS)


def _kept(values, scores):
    kept = []
    order = scores.argsort(descending=True)
    while order.numel() > 0:
        kept.append(order[0])
        order = order[1:][values[order[1:]] <= values[order[0]]]
    return torch.stack(kept)


def test_two_masks_choose_a_number_of_rows_each():
    """What an operator gives was remembered for a mask by its shape alone, and the second got the first one's size."""

    def model(v, s):
        m = s > 0.5
        b, t = v[m], s[m]
        m2 = s > 0.6
        b2, t2 = v[m2], s[m2]
        return b[_kept(b, t)], b2[_kept(b2, t2)], t2 * t2.shape[0], t * t.shape[0]

    g = torch.Generator().manual_seed(0)
    inputs = [(torch.rand(n, generator=g), torch.rand(n, generator=g) * 0.39 + 0.61) for n in (8, 3)]
    inputs += [(torch.rand(9, generator=g), torch.linspace(0.3, 0.9, 9))]
    assert_kept_alive(model, inputs[-1], inputs, dynamic_shapes=({0: "n"}, {0: "n"}))


def test_a_mask_that_two_branches_count():
    """Longformer: two layers choose rows by one mask, each in an arm of its own, and go on with them in a later one."""

    class Layer(nn.Module):
        def forward(self, x, mask, some):
            if some:
                rows = mask.nonzero(as_tuple=True)
                x = x + x[rows].sum()
            x = x * 2
            if some:
                x = x.clone()
                x[rows] = x[rows] + 1
            return x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(), Layer()

        def forward(self, x):
            mask = x > 1
            some = mask.flatten().any().item()
            return self.second(self.first(x, mask, some), mask, some)

    x = torch.tensor([[0.5, 2.0], [-1.0, 3.0], [0.0, 0.2]])
    assert_kept_alive(Net(), (x,), [(x - 4,), (x[:0],), (torch.cat([x, x + 1]),)], dynamic_shapes=({0: "n"},))


def test_an_index_error_that_the_model_goes_on_with():
    def model(x, i: int):
        try:
            first = x[5]
        except IndexError:
            first = x[-1]
        try:
            x = x.clone()
            x[:, i] = 7.0
        except IndexError:
            x = -x
        return first, x

    free = (*ROWS, None)
    assert_kept_alive(
        model,
        (torch.randn(7, 3), 1),
        dynamic_shapes=free,
        others=[(torch.randn(n, 3), i) for n, i in ((1, 2), (5, 3), (6, -4))],
    )


def test_an_index_error_that_another_suppress_lets_through():
    """Rows that the loop itself takes are there; and `suppress(KeyError)` does not end an IndexError."""

    def model(x):
        total = torch.zeros(3)
        with contextlib.suppress(KeyError):
            for row in x:
                total = total + row
            total = total + x[2]
        return total

    assert_kept_alive(model, (torch.randn(4, 3),), [(torch.randn(3, 3),), (torch.randn(9, 3),)], dynamic_shapes=ROWS)
