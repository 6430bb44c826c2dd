"""float64 stays float64 where the runtime would take a number into an attribute of single precision."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.lower.through_onnx import check, model_of

PRODUCTS = {
    "behind": lambda a, b: (a @ b) * 0.6,
    "before": lambda a, b: (0.6 * a) @ b,
    "divided": lambda a, b: (a @ b) / 3,
    "before a transposition": lambda a, b: (b * 0.1).t() @ a.t(),
    "twice": lambda a, b: ((p := a @ b) * 0.6, p * 0.3, 0.7 * p.t()),
    "added": lambda a, b: torch.addmm(b[:1], a, b, beta=0.2, alpha=0.6),
}


def matrices(rows: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 4, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_a_factor_of_a_product(product):
    check(product, matrices(), matrices(2), free={0: {0: "rows"}}, rtol=1e-12, atol=1e-12)


def test_nothing_is_put_between_where_nothing_is_lost():
    for forward, dtype in ((lambda a, b: (a @ b) * 0.5, torch.float64), (lambda a, b: (a @ b) * 0.6, torch.float32)):
        model = model_of(forward, [each.to(dtype) for each in matrices()])
        assert "Sum" not in [node.op_type for node in model.graph]


def test_batch_norm_and_its_epsilon():
    layer = nn.BatchNorm1d(4, eps=1e-5, dtype=torch.float64).eval()
    layer.running_var.fill_(1e-5)
    check(layer, (torch.randn(3, 4, dtype=torch.float64),), rtol=1e-12, atol=1e-12)


def test_layer_norm_and_its_epsilon():
    layer = nn.LayerNorm(4, dtype=torch.float64)
    check(layer, (1e-4 * torch.randn(3, 4, dtype=torch.float64),), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions(groups):
    weight = torch.randn(4, 3, 3, 2, dtype=torch.float64)
    options = {"stride": (3, 2), "padding": (1, 0), "output_padding": (2, 1), "dilation": (2, 1), "groups": groups}

    def forward(x, bias):
        return F.conv_transpose2d(x, weight, bias, **options)

    def inputs(*sizes):
        return torch.randn(2, 4, *sizes, dtype=torch.float64), torch.randn(3 * groups, dtype=torch.float64)

    free = {0: {2: "height", 3: "width"}}
    check(forward, inputs(4, 5), inputs(1, 7), free=free, rtol=1e-12, atol=1e-12)


def test_inverse_fourier_transforms():
    check(lambda x: torch.fft.irfft(x, norm="ortho"), (torch.randn(3, 6, dtype=torch.float64),), rtol=1e-12, atol=1e-12)


SHARED = {
    "attention": lambda y: F.scaled_dot_product_attention(y, y, y),
    "left": lambda y: ((y * 0.25) @ y.mT).softmax(-1) @ y,
    "right": lambda y: (y.abs() @ (y * 0.3)).softmax(-1) @ y,
    "divided": lambda y: ((y / 3) @ y.mT) @ (y / 2),
    "thrice": lambda y: ((y * 0.25 * 0.5) @ y.mT).softmax(-1) @ y,
}


@pytest.mark.parametrize("forward", SHARED.values(), ids=SHARED)
def test_a_factor_that_a_product_shares_with_others(forward):
    """The runtime's optimiser takes it away from the others, and then refuses its own model."""
    check(lambda x: forward(x * 3), (torch.randn(2, 4, 4),), (torch.randn(5, 4, 4),), free={0: {0: "batch"}})
