"""Operators that are said by others: equal to eager, with free sizes where eager has them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import trueport
from tests.lower.ops.faithful import faithful

ROWS = ({0},)


def test_covariance_with_weights():
    weights = torch.tensor([1, 3, 2, 1])

    def forward(x):
        return torch.cov(x), torch.cov(x, correction=0, fweights=weights, aweights=weights / 2.0), torch.corrcoef(x)

    faithful(forward, torch.randn(3, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_as_many_powers_as_there_are_rows(dtype):
    x = (torch.randn(3, 4) * 3).to(dtype)
    faithful(lambda x: torch.vander(x[:, 0], N=x.shape[0]), x, free=({0},))
    faithful(lambda x: torch.vander(x[0], x.shape[0] - 1, increasing=True), x, free=({0, 1},))


def test_as_many_bins_as_there_are_rows():
    def forward(x):
        return torch.histc(x, bins=x.shape[0]), torch.histc(input=x, bins=x.shape[0] + 2, min=-0.5, max=1)

    faithful(forward, torch.randn(4, 3), free=({0},))


def test_the_most_frequent_value():
    faithful(lambda x: (x.mode(1), x.mode(0, keepdim=True)), torch.randint(0, 3, (4, 7)), free=({0, 1},), unique=False)


def test_the_median_of_what_is_a_number():
    def forward(x):
        x = torch.where(x > 1, float("nan"), x)
        return x.nanmedian(), x.nanmedian(1).values

    faithful(forward, torch.randn(4, 5), free=ROWS)


def test_histograms():
    edges = torch.tensor([-1.0, -0.25, 0.0, 1.5])

    def forward(x):
        return torch.histogram(x, 5), torch.histogram(x, edges, density=True), torch.histogramdd(x, [2, 3])

    faithful(forward, torch.randn(20, 2))


def test_pools_at_given_fractions():
    samples = torch.rand(2, 3, 2)

    def forward(x):
        return F.fractional_max_pool2d(x, 2, output_size=(3, 4), return_indices=True, _random_samples=samples)

    faithful(forward, torch.randn(2, 3, 9, 8))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    lengths = torch.tensor([2, 0, 3])
    faithful(lambda x: torch.segment_reduce(x, reduce, lengths=lengths, initial=1.0), torch.randn(5, 2), free=(None,))


def test_distances_of_all_pairs():
    faithful(lambda x: F.pdist(x), torch.randn(5, 3), free=ROWS)


def test_as_many_classes_as_there_are():
    program = faithful(lambda x: F.one_hot(x), torch.tensor([0, 2, 1]))
    assert program(torch.tensor([4, 0, 0])).shape == (3, 5)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
def test_a_bilinear_form_of_integers_keeps_their_dtype(dtype):
    a, b, weight = (torch.arange(n).to(dtype) for n in (6, 8, 60))
    faithful(lambda a, b: F.bilinear(a, b, weight.reshape(5, 3, 4)), a.reshape(2, 3), b.reshape(2, 4))


def test_a_bilinear_form_of_an_empty_batch():
    weight, bias = torch.randn(5, 3, 4), torch.randn(5)
    faithful(lambda a, b: F.bilinear(a, b, weight, bias), torch.randn(2, 3), torch.randn(2, 4), free=({0}, {0}))


def test_indices_of_triangles():
    faithful(lambda x: (x + torch.tril_indices(3, 4, 1), torch.triu_indices(0, 0)), torch.zeros(1, 1))


def test_taking_along_an_axis_of_any_length():
    def forward(x, order):
        return (
            x.take_along_dim(order.argsort(dim=1, stable=True), 1),
            x.take_along_dim(order[:1] * 0, 0),
            x.take_along_dim(order),
        )

    faithful(forward, torch.randn(3, 4), torch.randint(0, 3, (3, 4)), free=({0, 1}, {0, 1}))


def test_products_of_free_sizes():
    def forward(a, b, c):
        return torch.kron(a, b), torch.linalg.multi_dot([a, b, c])

    faithful(forward, torch.randn(2, 3), torch.randn(3, 4), torch.randn(4, 5), free=({0, 1}, {0, 1}, {0, 1}))


def test_gradient_by_steps_and_by_places():
    def forward(x, places):
        steps = torch.gradient(x, spacing=[2.0, 0.5], edge_order=2)
        return *torch.gradient(x), *steps, *torch.gradient(x, spacing=[places], dim=0, edge_order=2)

    places = torch.tensor([0.0, 0.5, 2.0, 3.0, 3.5])
    at_least_3 = {0: torch.export.Dim("rows", min=3), 1: torch.export.Dim("columns", min=3)}
    shapes = (at_least_3, {0: at_least_3[0]})
    trueport.export(forward, (torch.randn(5, 4), places), dynamic_shapes=shapes)


@pytest.mark.parametrize("size", [(None, None), (3, None), (None, 2)])
def test_adaptive_maxima_that_keep_a_free_axis(size):
    """Torch takes the result's size as plain numbers."""

    def forward(x):
        return F.adaptive_max_pool2d(x, size), *F.adaptive_max_pool2d(x, size, return_indices=True)

    faithful(forward, torch.randint(0, 5, (2, 3, 5, 4)).float(), free=({2, 3},))


def test_adaptive_pooling_to_a_size_that_follows_from_a_free_one():
    def forward(x):
        half = x.shape[-1] // 2 + 1
        pooled = F.adaptive_max_pool1d(x, half), F.adaptive_avg_pool1d(x, half)
        return *pooled, F.interpolate(x, scale_factor=1.7, mode="area")

    faithful(forward, torch.randn(2, 3, 6), free=({0, 2},))


def test_pooling_over_the_whole_picture_by_one_number():
    """`avg_pool2d(x, x.shape[3])` goes over both axes."""
    side = {2: torch.export.Dim("side", min=1), 3: torch.export.Dim("side", min=1)}
    for pool in (F.avg_pool2d, F.max_pool2d):
        program = trueport.export(
            lambda x, pool=pool: pool(x, x.shape[3]), (torch.randn(2, 3, 5, 5),), dynamic_shapes=(side,)
        )
        assert program(torch.randn(2, 3, 7, 7)).shape == (2, 3, 1, 1)


def test_a_kernel_that_follows_from_another_axis():
    faithful(lambda x: F.avg_pool2d(x, x.shape[3]), torch.randn(2, 3, 9, 4), free=({2, 3},))


def test_parts_that_a_tensor_says_where_to_cut():
    def forward(x, places):
        first, *others = torch.tensor_split(x, places, dim=1)
        return first, *others, torch.cat(others, 1)

    faithful(forward, torch.randn(3, 7), torch.tensor([2, 5, -1]), free=({0, 1}, None))


def test_a_number_of_parts_that_a_tensor_says_is_refused_at_its_line():
    with pytest.raises(trueport.ExportError) as refused:
        faithful(lambda x, parts: torch.tensor_split(x, parts), torch.randn(6, 2), torch.tensor(3))
    assert refused.value.diagnostics[0].where is not None
    assert "number of parts" in str(refused.value)


def test_a_masked_index_may_be_none_where_it_is_masked():
    def forward(x, mask, rows, columns):
        return torch.ops.aten._unsafe_masked_index(x, mask, [rows, columns], 7.0)

    mask = torch.tensor([[True, False], [True, True]])
    faithful(
        forward,
        torch.randn(3, 4),
        mask,
        torch.tensor([[0], [-1]]),
        torch.tensor([[1, 9]]),
        free=({0, 1}, None, None, None),
    )


def test_a_loss_in_pieces_is_the_whole_loss():
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def forward(x, weight, target):
        return F.linear_cross_entropy(x, weight, target, options=options)

    faithful(forward, torch.randn(5, 3), torch.randn(4, 3), torch.randint(0, 4, (5,)))


def test_a_vector_with_weight_norm_has_a_norm_for_each_number():
    """pytorch/pytorch#191749: summed over no axes, it is summed over all."""
    v, g = torch.randn(5), torch.rand(5)
    faithful(lambda x: x * torch._weight_norm(v, g, 0), torch.randn(3, 5), free=ROWS)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_weight_norm_along_any_axis(axis):
    v = torch.randn(2, 3, 4)
    g = torch.norm_except_dim(v, 2, axis) * 1.5
    faithful(lambda x: x + torch._weight_norm(v, g, axis), torch.randn(1, 2, 3, 4), free=ROWS)


def saliency_of(layer):
    def forward(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = layer(x).tanh().flatten(1).sum()
            return torch.autograd.grad(found, x)[0]

    return forward


@pytest.mark.parametrize(
    ("layer", "sizes", "free"),
    [
        (nn.Conv2d(2, 3, 3, stride=2, padding=1), (2, 2, 6, 7), {0, 2, 3}),
        (nn.Conv2d(4, 6, 3, groups=2, padding=1), (1, 4, 5, 5), {0}),
        (nn.Conv1d(2, 3, 3, dilation=2, padding=1), (2, 2, 9), {0, 2}),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 4, 3), None),
    ],
)
def test_the_derivative_of_a_convolution_by_its_input(layer, sizes, free):
    """An odd remainder (6 of a stride of 2 with a margin) has derivatives of its own at the far edge."""
    layer.requires_grad_(False)
    faithful(saliency_of(layer), torch.randn(*sizes), free=(free,))


def test_the_derivative_of_a_convolution_by_its_weight():
    layer = nn.Conv2d(2, 4, 3, stride=2, groups=2)

    def forward(x):
        with torch.enable_grad():
            return torch.autograd.grad(layer(x).square().sum(), [layer.weight, layer.bias])

    faithful(forward, torch.randn(2, 2, 8, 7), free=({0, 2},))


def test_backward_in_forward_leaves_no_gradients_behind():
    """Grad-CAM: what `backward()` adds to the parameters is read by nobody, and is no state."""

    class Saliency(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())

        def forward(self, x):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                self.net(x).max(1).values.sum().backward()
            return x.grad.abs()

    model = Saliency().eval()
    faithful(model, torch.randn(1, 1, 5, 6), unique=False)  # one more call of eager would leave gradients
    assert all(parameter.grad is None for parameter in model.parameters())


def test_pairs_of_a_free_number_of_items():
    def forward(x):
        return torch.combinations(x), torch.combinations(x, 3), torch.combinations(x, with_replacement=True)

    faithful(forward, torch.randn(5), free=ROWS)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation):
    def quantiles(x, q):
        holes = torch.where(x > 1, torch.nan, x)
        return (
            torch.quantile(x, q, 0, interpolation=interpolation),
            torch.quantile(x, 0.3, -1, keepdim=True, interpolation=interpolation),
            torch.quantile(holes, q, 1, keepdim=True, interpolation=interpolation),
            torch.nanquantile(holes, q, 0, interpolation=interpolation),
            torch.nanquantile(holes, 0.9, keepdim=True, interpolation=interpolation),
        )

    faithful(quantiles, torch.randn(4, 5), torch.tensor([0.0, 0.25, 1.0]), free=({0, 1}, None))


def test_diagonals_of_which_nobody_knows_the_shorter_axis():
    def diagonals(x):
        y = x.clone()
        y.diagonal(1).fill_(7.0)
        return torch.diagonal(x), x.diagonal(-1, 1, 0), torch.linalg.diagonal(x, offset=2), y, x.trace()

    faithful(diagonals, torch.randn(4, 5), free=({0, 1},))


def test_what_comes_back_through_a_pooling():
    def back(x):
        pooled, places = torch.nn.functional.max_pool2d(x, 3, 1, return_indices=True)
        aten = torch.ops.aten.max_pool2d_with_indices_backward
        return aten(pooled * 2, x, [3, 3], [1, 1], [0, 0], [1, 1], False, places)

    faithful(back, torch.randn(2, 3, 6, 5), free=({0, 2, 3},))


def test_functions_over_rows_by_vmap():
    def over_rows(x, y):
        apart = torch.vmap(torch.vmap(lambda a, b: (a - b).abs().max(), in_dims=(None, 0)), in_dims=(0, None))(x, y)
        shares = torch.vmap(lambda row: torch.where(row > 0, row, 0.5).softmax(0) + 1, in_dims=1, out_dims=1)(x)
        slopes = torch.func.vmap(torch.func.grad(lambda row: (row**2).sum() * 3))(x)
        return apart, shares, slopes, torch.vmap(lambda row: row.sum() * 2)(x)

    faithful(over_rows, torch.randn(4, 3), torch.randn(2, 3), free=({0}, {0}))


def test_whether_all_or_any_are_true():
    aten = torch.ops.aten
    faithful(lambda x: (aten._is_all_true(x > 0), aten._is_any_true(x > 1)), torch.rand(3, 2), free=({0},))


def test_a_cross_product_without_an_axis():
    """Eager takes the first axis of three, which a free one may be."""
    faithful(lambda x: torch.cross(x, x.flip(1)), torch.randn(3, 4), free=({1},))
    with pytest.raises(trueport.ExportError, match="only the side where n is not 3"):
        trueport.export(lambda x: torch.cross(x, x.flip(1)), (torch.randn(4, 3),), dynamic_shapes=({0: "n"},))


def test_labels_behind_the_first_minus_one_are_no_labels():
    def forward(x, labels):
        loss = F.multilabel_margin_loss
        return loss(x, labels), loss(x, labels, reduction="none"), loss(x[0], labels[0], reduction="sum")

    faithful(forward, torch.randn(2, 4), torch.tensor([[3, 0, -1, 1], [0, -1, -1, 1]]))


def test_differences_of_rows_that_may_be_too_few():
    def forward(x, positions):
        found = positions[positions > 2]
        return (
            x.diff(dim=0),
            torch.diff(x, n=2, dim=0, prepend=x[:1], append=x[-1:]),
            (x > 0).diff(dim=-1),
            found.diff(prepend=found[:1] - 1),
            x.diff(n=0),
        )

    faithful(forward, torch.randn(4, 3), torch.tensor([1, 4, 2, 7, 3]), free=({0}, {0}))


@pytest.mark.parametrize("entries", [4, 30])
def test_distances_from_as_many_rows_as_a_tensor_says(entries):
    """A codec pads by what a tensor computes, and looks its frames up in a codebook; many entries are products."""
    torch.manual_seed(3)
    book = torch.randn(entries, 3)

    class Codebook(nn.Module):
        def __init__(self):
            super().__init__()
            self.stride = nn.Buffer(torch.tensor(4))

        def forward(self, x):
            missing = (self.stride - x.shape[0] % self.stride) % self.stride
            frames = F.pad(x, (0, 0, 0, missing))[::4]
            return torch.cdist(frames, book), torch.cdist(book, frames, p=1)

    faithful(Codebook(), torch.randn(9, 3), free=ROWS)
