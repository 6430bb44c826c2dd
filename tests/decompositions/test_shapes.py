"""What we say that an operator returns is what torch returns, for every size and option that torch accepts."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from trueport.decompositions.registry import results_of

aten = torch.ops.aten


def agrees(op, *args):
    """Whether ours and torch's results have the same sizes and dtypes; None where torch refuses the arguments."""
    try:
        theirs = op(*args)
    except RuntimeError:
        return None
    ours = results_of(op)(*args)
    pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
    return all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)


LENGTHS = range(1, 9)
WINDOWS = [
    dict(zip(("kernel", "stride", "padding", "ceil"), setting, strict=True))
    for setting in itertools.product((1, 2, 3), (1, 2, 3), (0, 1), (False, True))
]


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("op", [aten.max_pool1d.default, aten.max_pool1d_with_indices.default])
def test_maxima_in_windows(op, dilation):
    seen = [
        agrees(op, torch.randn(2, 1, n), [w["kernel"]], [w["stride"]], [w["padding"]], [dilation], w["ceil"])
        for w in WINDOWS
        for n in LENGTHS
    ]
    assert True in seen
    assert False not in seen


def test_means_in_windows():
    seen = [
        agrees(aten.avg_pool2d.default, torch.randn(2, 1, n, 5), [w["kernel"]], [], [w["padding"]], w["ceil"])
        for w in WINDOWS
        for n in LENGTHS
    ]
    assert True in seen
    assert False not in seen


@pytest.mark.parametrize("op", [aten.upsample_nearest2d.vec, aten._upsample_nearest_exact2d.vec])
def test_resized_by_scales(op):
    seen = [
        agrees(op, torch.randn(1, 1, n, n), None, [scale, 2.0])
        for n in range(1, 40)
        for scale in (0.5, 0.7, 1.0, 1.05, 1.1, 3.0)
    ]
    assert True in seen
    assert False not in seen


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_recurrent_layers(batch_first, bidirectional):
    x = torch.randn(5, 2, 3)
    layers = 2 * (2 if bidirectional else 1)
    settings = (True, 2, 0.0, False, bidirectional, batch_first)
    options = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": batch_first}
    state = torch.zeros(layers, x.shape[0 if batch_first else 1], 4)
    assert agrees(aten.gru.input, x, state, nn.GRU(3, 4, **options)._flat_weights, *settings)
    assert agrees(aten.lstm.input, x, [state, state], nn.LSTM(3, 4, **options)._flat_weights, *settings)
    projected = nn.LSTM(3, 4, proj_size=2, **options)._flat_weights
    assert agrees(aten.lstm.input, x, [state[..., :2], state], projected, *settings)
