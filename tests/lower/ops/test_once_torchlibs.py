"""Operators whose translation once came from onnxscript's torchlib, at their edges too."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from tests.lower.ops.faithful import faithful
from trueport.torch_internals import quantised_operators

FLOATS = (torch.float16, torch.float32, torch.float64)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dtype", [*FLOATS, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_the_angle_of_real_numbers(dtype):
    numbers = [-INF, -2.0, -0.0, 0.0, 3.0, INF, NAN] if dtype.is_floating_point else [0, 1, 5]
    faithful(torch.angle, torch.tensor(numbers).to(dtype), free=({0},))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_a_number_shifted_by_a_tensor(dtype):
    ends = torch.iinfo(dtype)
    by = torch.tensor([0, 1, 7, 8, ends.bits - 1, ends.bits]).to(dtype)

    def forward(by):
        return 3 << by, torch.bitwise_left_shift(ends.max, by), torch.bitwise_right_shift(ends.min, by), 300 << by

    faithful(forward, by, free=({0},))


FOLDED = {
    "apart": lambda x: F.fold(x, (6, 8), (2, 2), stride=2),
    "overlapping": lambda x: F.fold(x, (4, 5), (2, 2)),
    "padded, with gaps": lambda x: F.fold(x, (6, 6), (2, 2), dilation=2, padding=1, stride=(2, 1)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FOLDED)
def test_pictures_put_together_of_columns(name, dtype):
    columns = {"apart": 12, "overlapping": 12, "padded, with gaps": 18}[name]
    faithful(FOLDED[name], torch.randn(2, 12, columns, dtype=dtype), free=({0},))
    faithful(FOLDED[name], torch.randn(12, columns, dtype=dtype))


def test_a_picture_of_free_size_put_together():
    faithful(
        lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1), torch.randn(1, 2, 5, 6), free=({2, 3},)
    )


COUNTED = {
    "in the range of the values": lambda x: torch.histc(x, 5),
    "in a given range": lambda x: torch.histc(x, 4, -1, 1.5),
    "in one bin": lambda x: torch.histc(x, 1, -1, 1),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_counted(name, dtype):
    faithful(COUNTED[name], torch.randn(4, 5).to(dtype))


def test_values_counted_of_which_there_may_be_none():
    faithful(lambda x: torch.histc(x, 4, -1, 1.5), torch.randn(6), free=({0},))


@pytest.mark.parametrize("values", [[NAN, 1.0, INF, -INF, 3.0, 0.0], [2.0, 2.0], [0.0, 3.0, 3.0]])
def test_values_counted_at_the_edges(values):
    faithful(lambda x: torch.histc(x, 4, 0, 3), torch.tensor(values))


def test_equal_values_counted():
    faithful(lambda x: torch.histc(x * 0 + 2, 4), torch.ones(3))


WINDOWS = ("hann", "hamming", "blackman", "bartlett", "kaiser")


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_known_length(name):
    window = getattr(torch, f"{name}_window")

    def forward(x):
        every = [window(length, periodic) for length in (0, 1, 6) for periodic in (True, False)]
        return x * window(6), torch.cat(every) + x.sum(), window(5, dtype=torch.float64)

    faithful(forward, torch.randn(2, 6))


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_free_length(name):
    window = getattr(torch, f"{name}_window")
    faithful(lambda x: x * window(x.shape[1]) + window(x.shape[1], periodic=False), torch.randn(2, 6), free=({1},))


def test_a_window_is_the_traces_own_to_write_to():
    def forward(x):
        window = torch.hann_window(4)
        window[0] = x.sum()
        return x * window

    faithful(forward, torch.randn(4))


def test_settings_of_a_window():
    def forward(x):
        length = x.shape[0]
        return (
            torch.hamming_window(length, True, 0.5, 0.4) + torch.hamming_window(length, False, alpha=0.6),
            torch.kaiser_window(length, True, 7.0) + torch.hamming_window(3, True, alpha=0.6, beta=0.3).sum(),
        )

    faithful(forward, torch.randn(7), free=({0},))


@pytest.mark.parametrize("norm_type", [1.0, 2.0, INF])
def test_rows_that_are_looked_up_get_no_longer(norm_type):
    def forward(x, ids):
        table = x * 3
        return F.embedding(ids, table, max_norm=1.0, norm_type=norm_type), table

    faithful(forward, torch.randn(5, 4), torch.tensor([[0, 3], [3, 1]]), free=(None, {0}))


def test_the_slope_of_a_clipped_line():
    def slope(x):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            (found,) = torch.autograd.grad((F.hardtanh(x, -1, 2) * x).sum(), x)
        return found

    faithful(slope, torch.tensor([-3.0, -1.0, 0.5, 2.0, 4.0]))


class Primitives(nn.Module):
    def forward(self, x):
        prims = torch.ops.prims
        wide = prims.broadcast_in_dim(x, [2, x.shape[0], 3], [1])
        return prims.transpose(wide, [2, 0, 1]), prims.sum(prims.exp(x), [0]), prims.where(x > 0, prims.neg(x), x)


def test_torchs_own_primitives():
    faithful(Primitives(), torch.randn(4), free=({0},))


def test_whole_numbers_whose_limits_are_tensors():
    operators = quantised_operators()
    scale, zero, low, high = torch.tensor(0.1), torch.tensor(3), torch.tensor(-100), torch.tensor(100)

    def forward(x):
        numbers = operators.quantize_per_tensor.tensor2(x, scale, zero, low, high, torch.int8)
        return numbers, operators.dequantize_per_tensor.tensor2(numbers, scale, zero, low, high, torch.int8)

    faithful(forward, torch.tensor([-50.0, -10.0, 0.04, 1.0, 50.0]), free=({0},))


@pytest.mark.parametrize("compare", [torch.ops.aten.equal, torch.ops.aten.allclose])
def test_operators_that_give_a_bool_are_refused(compare):
    """As functions, `torch.equal` and `torch.allclose`, they decide like any tensor; below those nobody can ask."""
    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(lambda x, y: x if compare(x, y) else y * 3, (torch.ones(3), torch.ones(3)))
    assert [found.code for found in refused.value.diagnostics] == ["TP101"]
