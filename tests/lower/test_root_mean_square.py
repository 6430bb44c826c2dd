"""Norms by the root mean square, called and written by hand: one kernel of the runtime, and eager's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.lower.through_onnx import check

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


def kernels(model: ir.Model, tmp_path) -> list[str]:
    """What ONNX Runtime computes, once its optimiser is through."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]


@pytest.mark.parametrize("function", [called, by_hand, with_squares])
@pytest.mark.parametrize("opset", [13, 18, 20, 23])
def test_it_is_one_kernel(function: Callable[..., torch.Tensor], opset: int, tmp_path) -> None:
    nothing, one, hundred = X[:0], X[:1, :1], torch.linspace(-1e3, 1e3, 2400).reshape(3, 100, 8)
    model = check(function, (X,), (nothing,), (X[:, :0],), (one,), (hundred,), free=FREE, opset=opset)
    assert kernels(model, tmp_path) == ["RMSNormalization" if opset == 23 else "SimplifiedLayerNormalization"]
    written = [node.op_type for node in model.graph if node.op_type != "Constant"]
    assert len(written) == (1 if opset == 23 else 7)


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
