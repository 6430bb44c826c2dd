"""Products, convolutions, norms and attention: one ONNX node where ONNX has one, and eager's numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import trueport
from tests.lower.through_onnx import check, model_of

BATCH = {0: {0: "batch"}}
IMAGE = {0: {0: "batch", 2: "height", 3: "width"}}


def operators(model) -> list[str]:
    return [node.op_type for node in model.graph if node.op_type != "Constant"]


def test_a_linear_layer_is_one_gemm_and_its_weight_stays_as_it_is():
    layer = nn.Linear(4, 3)
    model = check(layer, (torch.randn(2, 4),), (torch.randn(0, 4),), free=BATCH)
    assert operators(model) == ["Gemm"]
    assert set(model.graph.initializers) == {"weight", "bias"}
    assert model.graph.initializers["weight"].const_value.raw.data_ptr() == layer.weight.data_ptr()


def test_a_linear_layer_on_more_axes():
    model = check(nn.Linear(4, 3), (torch.randn(2, 5, 4),), (torch.randn(7, 5, 4),), free=BATCH)
    assert operators(model) == ["Transpose", "MatMul", "Add"]


def test_products():
    def forward(a, b):
        return (
            a @ b,
            torch.addmm(a[:, :1], a, b, alpha=2, beta=0.5),
            F.linear(a, b.t()),
            torch.einsum("ij,jk->ki", a, b),
        )

    check(forward, (torch.randn(4, 3), torch.randn(3, 5)), (torch.randn(2, 3), torch.randn(3, 5)), free=BATCH)
    check(lambda a, b: a @ b, (torch.randint(0, 9, (4, 3)), torch.randint(0, 9, (3, 5))))


def test_products_of_stacks():
    def forward(a, b):
        added = torch.baddbmm(a[:, :, :1], a, b, alpha=2, beta=0.5)
        return torch.bmm(a, b), a @ b[0], a[0] @ b, added, a @ b[0, :, 0]

    free = {0: {0: "batch"}, 1: {0: "batch"}}
    check(
        forward, (torch.randn(2, 4, 3), torch.randn(2, 3, 5)), (torch.randn(3, 4, 3), torch.randn(3, 3, 5)), free=free
    )


def test_products_over_nothing():
    free = {0: {1: "depth"}, 1: {0: "depth"}}
    inputs = [(torch.randn(4, n), torch.randn(n, 5)) for n in (3, 0)]
    check(lambda a, b: (a @ b, torch.addmm(torch.ones(5), a, b, beta=0.5)), *inputs, free=free)


def test_a_bilinear_layer():
    check(nn.Bilinear(3, 4, 5), (torch.randn(2, 6, 3), torch.randn(2, 6, 4)))


def test_nan_times_zero_is_not_looked_at():
    nothing = torch.full((2, 3), math.nan)
    check(lambda a, b: torch.addmm(nothing, a, b, beta=0), (torch.randn(2, 4), torch.randn(4, 3)))


def test_small_matrices():
    check(
        lambda x: (torch.linalg.inv(x), torch.linalg.det(x)),
        (torch.randn(2, 3, 3) + 3 * torch.eye(3),),
        rtol=1e-4,
        atol=1e-4,
    )
    check(lambda a, b: torch.linalg.cross(a, b), (torch.randn(4, 3), torch.randn(4, 3)))


CONVOLUTIONS = {
    "strided, padded, grouped": nn.Conv2d(4, 6, 3, padding=1, stride=2, groups=2),
    "dilated": nn.Conv2d(4, 6, 3, dilation=2, bias=False),
    "same size": nn.Conv2d(4, 6, (3, 4), padding="same", dilation=2),
    "transposed": nn.ConvTranspose2d(4, 6, 3, padding=1, stride=2, output_padding=1, groups=2),
}


@pytest.mark.parametrize("layer", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions_of_images_of_any_size(layer):
    model = check(layer, (torch.randn(2, 4, 8, 8),), (torch.randn(3, 4, 9, 7),), free=IMAGE)
    assert len(operators(model)) == 1


def test_convolutions_in_one_and_three_axes_and_without_a_batch():
    check(nn.Conv1d(4, 6, 3), (torch.randn(2, 4, 8),))
    check(nn.Conv3d(4, 6, 2), (torch.randn(2, 4, 3, 4, 5),))
    check(nn.Conv2d(4, 6, 3), (torch.randn(4, 8, 8),))
    check(nn.ConvTranspose1d(4, 6, 3), (torch.randn(2, 4, 8),))


def test_convolutions_in_float64_keep_their_digits():
    """The runtime has none: a product of matrices has the digits."""
    layer = nn.Conv2d(4, 6, 3, padding=1, stride=2, groups=2, dilation=2).double()
    free = {0: {0: "batch", 2: "height", 3: "width"}}
    check(
        layer,
        (torch.randn(2, 4, 8, 8).double(),),
        (torch.randn(3, 4, 9, 7).double(),),
        free=free,
        rtol=1e-12,
        atol=1e-12,
    )


def test_the_windows_of_an_image():
    check(nn.Unfold((2, 3), padding=1, stride=2), (torch.randn(2, 4, 6, 7),), (torch.randn(0, 4, 9, 3),), free=IMAGE)


def test_a_layer_norm_is_one_node():
    free = {0: {0: "batch", 1: "time"}}
    model = check(nn.LayerNorm(4), (torch.randn(2, 3, 4),), (torch.randn(5, 1, 4),), free=free)
    assert operators(model) == ["LayerNormalization"]
    check(nn.LayerNorm((3, 4), elementwise_affine=False), (torch.randn(2, 3, 4),), free=BATCH)


def running(layer: nn.Module) -> nn.Module:
    """In inference, with statistics that are not the initial ones."""
    layer = layer.eval()
    if layer.running_mean is not None:
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 2)
    return layer


NORMS = {
    "groups": (nn.GroupNorm(2, 4), torch.randn(2, 4, 3, 5)),
    "groups in float64": (nn.GroupNorm(2, 4).double(), torch.randn(2, 4, 3, 5).double()),
    "root mean square": (nn.RMSNorm(4), torch.randn(2, 3, 4)),
    "batch": (running(nn.BatchNorm2d(4)), torch.randn(2, 4, 3, 3)),
    "batch of vectors": (running(nn.BatchNorm1d(4)), torch.randn(2, 4)),
    "batch, not affine": (running(nn.BatchNorm1d(4, affine=False)), torch.randn(2, 4, 3)),
    "batch by its own statistics": (running(nn.BatchNorm2d(4, track_running_stats=False)), torch.randn(2, 4, 3, 3)),
    "instance": (nn.InstanceNorm2d(4, affine=True), torch.randn(2, 4, 3, 3)),
    "instance in float64": (nn.InstanceNorm2d(4).double(), torch.randn(2, 4, 3, 3).double()),
}


@pytest.mark.parametrize(("layer", "x"), NORMS.values(), ids=NORMS)
def test_norms(layer, x):
    # Eager's own instance norm fails on a batch of none.
    none = [] if isinstance(layer, nn.InstanceNorm2d) else [(x[:0],)]
    check(layer, (x,), (torch.cat([x, x * 2, x[:1]]),), *none, free=BATCH)


def heads(batch=2, heads=4, length=5, width=8) -> torch.Tensor:
    return torch.randn(batch, heads, length, width)


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3, "is_causal": True},
}
LENGTHS = {0: {0: "batch", 2: "queries"}, 1: {0: "batch", 2: "keys"}, 2: {0: "batch", 2: "keys"}}


@pytest.mark.parametrize("options", ATTENTION.values(), ids=ATTENTION)
def test_attention(options):
    check(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options),
        (heads(), heads(length=7), heads(length=7)),
        (heads(3, length=6), heads(3, length=2), heads(3, length=2)),
        free=LENGTHS,
    )


def test_attention_where_several_queries_share_a_key():
    check(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (heads(), heads(heads=2, length=7), heads(heads=2, length=7)),
        (heads(3), heads(3, heads=2, length=2), heads(3, heads=2, length=2)),
        free=LENGTHS,
    )


def test_a_query_that_sees_nothing_gives_zeros():
    mask = torch.rand(2, 1, 5, 7) > 0.5
    mask[0, 0, 1] = False
    added = torch.zeros(2, 1, 5, 7).masked_fill(~mask, -math.inf)
    forward = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m)  # noqa: E731
    for given in (mask, added):
        check(forward, (heads(), heads(length=7), heads(length=7), given))


def test_layers_share_the_causal_mask():
    def forward(x):
        for _ in range(3):
            x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return x

    model = model_of(forward, (heads(),), {0: {0: "batch", 2: "time"}})
    assert operators(model).count("Less") == 1


def test_transformer_layers():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    free = {0: {0: "batch", 1: "time"}}
    check(layer, (torch.randn(2, 3, 8),), (torch.randn(4, 5, 8),), free=free)
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    check(attention, (torch.randn(2, 3, 8), torch.randn(2, 4, 8), torch.randn(2, 4, 8)))


def test_convolutions_with_a_kernel_that_is_given():
    """All axes free, those of the channels too, of which eager makes none where it is given none."""
    free = {0: {1: "channels", 2: "length"}, 1: {0: "made", 1: "channels", 2: "kernel"}, 2: {0: "made"}}

    def inputs(channels, length, made, kernel):
        return torch.randn(2, channels, length), torch.randn(made, channels, kernel), torch.randn(made)

    others = (inputs(2, 9, 5, 2), inputs(0, 6, 4, 3))
    check(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1), inputs(3, 6, 4, 3), *others, free=free)


def test_a_transposed_convolution_in_space_with_everything_free():
    """Its sizes speak of nine symbols at once, which are judged in bounded time."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = dict.fromkeys(range(1, 5), dynamic), dict.fromkeys(range(5), dynamic), {0: dynamic}
    inputs = torch.randn(1, 3, 4, 4, 4), torch.randn(3, 3, 3, 3, 3), torch.randn(3)

    def forward(x, weight, bias):
        return F.conv_transpose3d(x, weight, bias, stride=2, padding=2, output_padding=1)

    assert trueport.export(forward, inputs, dynamic_shapes=axes)(*inputs).shape == forward(*inputs).shape
