"""Norms, called and written by hand: one kernel of the runtime, and eager's numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.lower.through_onnx import check as checked
from trueport.optimise.names import NAMES

check = functools.partial(checked, passes=NAMES)
WEIGHT = torch.linspace(0.5, 2, 8)
X = torch.linspace(-3, 4, 48).reshape(2, 3, 8)
FREE = {0: {0: "b", 1: "s"}}


def called(x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (8,), WEIGHT.to(x.dtype), 1e-6)


def by_hand(x: torch.Tensor) -> torch.Tensor:
    """As transformers writes it."""
    variance = x.pow(2).mean(-1, keepdim=True)
    return WEIGHT.to(x.dtype) * (x * torch.rsqrt(variance + 1e-6))


def with_squares(x: torch.Tensor) -> torch.Tensor:
    return x * (x * x).mean(dim=(2,), keepdim=True).add(1e-5).rsqrt() * WEIGHT.to(x.dtype)


def divided(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-6) * WEIGHT


def of_a_power(x: torch.Tensor) -> torch.Tensor:
    return x * (1e-6 + x.square().mean(-1, keepdim=True)).pow(-0.5) * (1 + WEIGHT)


def kernels(model: ir.Model, tmp_path) -> list[str]:
    """What ONNX Runtime computes, once its optimiser is through."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]


@pytest.mark.parametrize("function", [called, by_hand, with_squares, divided, of_a_power])
@pytest.mark.parametrize("opset", [13, 18, 20, 23])
def test_it_is_one_kernel(function: Callable[..., torch.Tensor], opset: int, tmp_path) -> None:
    nothing, one, hundred = X[:0], X[:1, :1], torch.linspace(-1e3, 1e3, 2400).reshape(3, 100, 8)
    model = check(function, (X,), (nothing,), (X[:, :0],), (one,), (hundred,), free=FREE, opset=opset)
    written = [node.op_type for node in model.graph]
    assert kernels(model, tmp_path) == ["RMSNormalization" if opset == 23 else "SimplifiedLayerNormalization"]
    assert len(written) == (1 if opset == 23 else 6)


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("function", [called, by_hand])
def test_zeros_infinities_and_the_ends_of_the_dtype(function: Callable[..., torch.Tensor], opset: int) -> None:
    rows = [[0.0] * 8, [-0.0] * 8, [1e-30] * 8, [1e30] * 8, [math.inf] + [1.0] * 7, [math.nan] + [1.0] * 7, [3e38] * 8]
    check(function, (X,), (torch.tensor(rows)[None],), free=FREE, opset=opset)


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [called, by_hand])
def test_other_dtypes_keep_their_digits(function: Callable[..., torch.Tensor], dtype: torch.dtype, opset: int) -> None:
    """In double precision the epsilon has digits that the operator, and the runtime's own fusion, would drop."""
    small = (X * 1e-3).to(dtype)
    loose = {torch.float64: 1e-12, torch.float16: 2e-2, torch.bfloat16: 8e-2}[dtype]
    model = check(function, (small,), (small[:0],), free=FREE, opset=opset, rtol=loose, atol=loose * 10)
    if dtype is torch.float64:
        assert not {"RMSNormalization", "Pow"} & {node.op_type for node in model.graph}


def read_twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    variance = x.pow(2).mean(-1, keepdim=True)
    return WEIGHT * (x * torch.rsqrt(variance + 1e-6)), variance


def of_another(x: torch.Tensor) -> torch.Tensor:
    return WEIGHT * (x * torch.rsqrt((x + 1).pow(2).mean(-1, keepdim=True) + 1e-6))


def over_the_first_axis(x: torch.Tensor) -> torch.Tensor:
    return WEIGHT * (x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6))


def scaled_by_row(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(3, 1) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


@pytest.mark.parametrize("function", [read_twice, of_another, over_the_first_axis, scaled_by_row])
@pytest.mark.parametrize("opset", [20, 23])
def test_what_only_looks_like_one_stays(function: Callable[..., torch.Tensor], opset: int) -> None:
    model = check(function, (X,), (X * 3,), opset=opset)
    if function is scaled_by_row and opset == 23:  # one without a scale
        assert [node.op_type for node in model.graph] == ["RMSNormalization", "Mul"]
        return
    assert not {"RMSNormalization", "Pow"} & {node.op_type for node in model.graph}


def test_without_a_scale() -> None:
    for opset in (20, 23):
        check(lambda x: F.rms_norm(x, (3, 8)), (X,), (X[:0],), free={0: {0: "b"}}, opset=opset)
        check(nn.RMSNorm(8, elementwise_affine=False), (X,), opset=opset)


def test_inside_a_branch() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, by_hand, lambda x: x * 2, (x,))

    for opset in (20, 23):
        model = check(forward, (X,), (-X,), opset=opset)
        assert ("RMSNormalization" if opset == 23 else "Pow") in {node.op_type for node in model.graph.all_nodes()}


BIAS = torch.linspace(-1, 1, 8)


def two_differences(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * WEIGHT + BIAS


def scaled_before(x: torch.Tensor) -> torch.Tensor:
    return WEIGHT * (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) + BIAS


def with_rsqrt(x: torch.Tensor) -> torch.Tensor:
    apart = x - x.mean(-1, True)
    return BIAS + WEIGHT * (apart * torch.rsqrt(apart.pow(2).mean(-1, True) + 1e-5))


def with_var_mean(x: torch.Tensor) -> torch.Tensor:
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * WEIGHT + BIAS


def of_two_axes(x: torch.Tensor) -> torch.Tensor:
    apart = x - x.mean((1, 2), True)
    return apart / (apart.square().mean((-1, -2), True) + 1e-5).sqrt()


def scaled_afterwards(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (8,)) * WEIGHT + BIAS


LAYER_NORMS = [two_differences, scaled_before, with_rsqrt, with_var_mean, of_two_axes, scaled_afterwards]


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("function", LAYER_NORMS)
def test_a_layer_norm_is_one_operator(function: Callable[..., torch.Tensor], opset: int) -> None:
    free = {0: {0: "b"}} if function is of_two_axes else FREE
    more = [X[:0], X[:1], X * 1e3 + 50]
    model = check(function, (X,), *((x,) for x in more), free=free, opset=opset, rtol=1e-4, atol=1e-4)
    assert [node.op_type for node in model.graph] == ["LayerNormalization"]


@pytest.mark.parametrize("function", [two_differences, with_rsqrt])
def test_layer_norms_of_the_ends_of_the_dtype(function: Callable[..., torch.Tensor]) -> None:
    rows = [[0.0] * 8, [1e-30] * 8, [5.0] * 8, [math.inf] + [1.0] * 7, [math.nan] + [1.0] * 7]
    check(function, (X,), (torch.tensor(rows)[None],), free=FREE)


def by_its_deviation(x: torch.Tensor) -> torch.Tensor:
    """As the Annotated Transformer writes it: the deviation of a sample, and the epsilon outside of the root."""
    return WEIGHT * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + BIAS


def of_a_sample(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5) * WEIGHT


def centred_elsewhere(x: torch.Tensor) -> torch.Tensor:
    apart = x - x.mean(1, True)
    return apart / torch.sqrt(apart.square().mean(-1, True) + 1e-5) * WEIGHT


def variance_read_twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    apart = x - x.mean(-1, True)
    variance = apart.square().mean(-1, True)
    return apart / torch.sqrt(variance + 1e-5), variance


def by_moments(x: torch.Tensor) -> torch.Tensor:
    """Another number where the mean is large: rounding is all that is left of the difference."""
    mean = x.mean(-1, True)
    return (x - mean) / torch.sqrt((x * x).mean(-1, True) - mean * mean + 1e-5)


def scaled_for_each_row(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (8,)) * (1 + x.mean(1, True)) + x.amax(1, True)


NO_LAYER_NORMS = [by_its_deviation, of_a_sample, centred_elsewhere, variance_read_twice, by_moments]


@pytest.mark.parametrize("function", NO_LAYER_NORMS)
def test_what_only_looks_like_a_layer_norm_stays(function: Callable[..., torch.Tensor]) -> None:
    model = check(function, (X,), (X * 3,))
    assert "LayerNormalization" not in {node.op_type for node in model.graph}


def test_a_scale_of_its_own_stays_outside() -> None:
    model = check(scaled_for_each_row, (X,))
    assert {"Mul", "Add"} < {node.op_type for node in model.graph}


@pytest.mark.parametrize("opset", [16, 20])
def test_the_sum_before_a_norm_is_not_joined_with_it(opset: int, tmp_path) -> None:
    """`SkipLayerNormalization` takes eight times as long as the two, on the CPU."""
    layer = nn.LayerNorm(8)

    def forward(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = x - y
        return layer(x + y), layer(both) + both

    with torch.no_grad():
        model = check(forward, (X, X * 2), free={i: {0: "b", 1: "s"} for i in range(2)}, opset=opset)
    assert sorted(set(kernels(model, tmp_path))) == ["Add", "LayerNormalization", "Sub", "Sum"]
