"""Views, joining, slicing, creation: free sizes stay free, 0 and 1 included."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.through_onnx import check, model_of

ROWS = {0: {0: "rows"}}
FREE = {0: {0: "rows", 1: "columns"}}
FEW = [(torch.randn(4, 3),), (torch.randn(5, 3),), (torch.randn(1, 3),)]
NONE = (torch.randn(0, 3),)

VIEWS = {
    "flat": lambda x: x.view(-1),
    "an axis more": lambda x: (x.unsqueeze(1), x.unsqueeze(-1), x[:, None]),
    "an axis less": lambda x: (x[:, None].squeeze(1), x[None].squeeze(0)),
    "transposed": lambda x: (x.t(), x.permute(1, 0), x.transpose(-1, 0), x.mT),
    "expanded": lambda x: (x[:, None].expand(-1, 4, -1), x[None].expand(2, x.shape[0], 3), x.expand_as(x)),
    "backwards": lambda x: (x.flip(0), x.flip(0, 1), x.flip(-1)),
    "repeated": lambda x: (x.repeat(2, 1, 3), x.tile(2), x.repeat_interleave(2, 0), x.repeat_interleave(3)),
    "split into two axes": lambda x: x.unflatten(1, (3, 1)),
    "rolled": lambda x: (x.roll(1, 0), x.roll(2), x.roll((1, 2), (0, 1)), x.roll(-5, 1)),
    "one axis in front": lambda x: x.reshape(x.shape[0], 1, 3),
    "joined": lambda x: (torch.cat([x, x]), torch.cat([x, x.int()], 1), torch.stack([x, x], 1)),
    "joined with nothing": lambda x: torch.cat([torch.zeros(0), x]),
    "split": lambda x: (x.split(1, 1), x.split([1, 2], 1), x.chunk(2, 1), x.unbind(1)),
    "without the last": lambda x: (x[:-1], x[1:], x[::2], x[:, 1:2], x[:, -2:], x[..., 0], x[: x.shape[0] // 2]),
    "diagonals": lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-1), torch.diag_embed(x)),
    "triangles": lambda x: (x.tril(), x.triu(1), x.tril(-1), (x > 0).triu()),
    "filled": lambda x: (torch.zeros_like(x), torch.full_like(x, 2.5), x.new_ones(x.shape[0]), torch.zeros(x.shape)),
    "counted": lambda x: (torch.arange(x.shape[0]), torch.arange(x.shape[0], dtype=torch.float16)),
    "identity": lambda x: torch.eye(x.shape[0]),
}


@pytest.mark.parametrize("forward", VIEWS.values(), ids=VIEWS)
def test_with_any_number_of_rows(forward):
    check(forward, *FEW, NONE, free=ROWS)


def test_rows_that_must_be_there():
    check(lambda x: (x[0], x[-1], x.narrow(0, 1, 1), x.select(1, -1)), FEW[0], FEW[1], free=ROWS)


def test_written_slices():
    def forward(x):
        rows, one = torch.zeros(2, 3), torch.zeros(3)
        return (
            torch.slice_scatter(x, rows, 0, 1, 3),
            torch.slice_scatter(x, rows, 0, -2),
            torch.slice_scatter(x, x[::2] * 2, 0, 0, None, 2),
            torch.select_scatter(x, one, 0, 1),
            torch.select_scatter(x, one, 0, -1),
            torch.diagonal_scatter(x, torch.ones(3)),
        )

    check(forward, FEW[0], FEW[1], free=ROWS)


def test_chunks_of_a_free_axis():
    """Unpacked: one row is one chunk in eager, so what `chunk` itself returns has no number of outputs."""

    def model(x):
        first, second = x.chunk(2)
        return first, second

    check(model, (torch.randn(4, 3),), (torch.randn(5, 3),), (torch.randn(3, 3),), free=ROWS)


def test_split_by_numbers_that_the_data_gives():
    forward = lambda x, sizes: x.split(sizes.tolist())  # noqa: E731
    check(forward, (torch.randn(6), torch.tensor([2, 4])), (torch.randn(6), torch.tensor([6, 0])))


def test_windows():
    check(lambda x: (x.unfold(1, 3, 2), x.unfold(0, 1, 1)), (torch.randn(4, 7),), (torch.randn(2, 8),), free=FREE)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_pixels(rank):
    x = torch.randn(*(2,) * (rank - 3), 4, 4, 6)
    check(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), (x,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool], ids=str)
def test_pixels_of_integers_keep_their_digits(dtype):
    x = torch.arange(96).remainder(2) if dtype is torch.bool else torch.iinfo(dtype).max - torch.arange(96)
    check(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), (x.to(dtype).reshape(1, 4, 4, 6),))


def test_repeats_that_the_data_gives():
    free = {0: {0: "rows"}, 1: {0: "rows"}}
    numbers = [[1, 0, 2], [0, 0, 3, 1], []]
    inputs = [(torch.randn(len(n), 2), torch.tensor(n, dtype=torch.long)) for n in numbers]
    check(lambda x, n: x.repeat_interleave(n, 0), *inputs, free=free)


def test_numbers_in_even_steps():
    def forward(x):
        n = x.shape[0]
        steps = torch.linspace(0, 1, n), torch.linspace(-1, 2, 5), torch.linspace(0, n - 1, n)
        return *steps, torch.arange(0, 1, 0.3), torch.arange(n / 2), torch.arange(1, n, 2), torch.arange(n, 0, -1)

    check(forward, *FEW, free=ROWS)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_steps_of_integers_begin_at_a_whole_number(dtype):
    """int64 cuts all three off and then counts; the others count first: [2, 1, 0, -1] and one more."""
    check(
        lambda x: (
            torch.arange(2.1, -2.9, -1.0, dtype=dtype),
            torch.arange(-0.9, 2.1, 2.0, dtype=dtype),
            torch.linspace(4.3, -3, 50, dtype=dtype),
            torch.linspace(0.7, 9.9, 7, dtype=dtype),
            torch.linspace(2.9, 9, 1, dtype=dtype),
            torch.linspace(4.9, 20.9, x.shape[0], dtype=dtype),
            torch.arange(x.shape[0] / 2, dtype=dtype),
        ),
        *FEW,
        free=ROWS,
    )


def test_half_precision_counts_in_single_precision():
    check(
        lambda x: torch.arange(x.shape[0], dtype=x.dtype) + 0.5,
        (torch.randn(4).half(),),
        (torch.randn(9).half(),),
        free=ROWS,
    )


def test_sizes_and_numbers_as_outputs():
    check(lambda x: (x.shape[0], x.shape[0] * 2 + 1, 3, 2.5, x.shape[0] / 2, True, None), *FEW, free=ROWS)


def test_an_output_twice_and_an_input_as_output():
    check(lambda x: (x, x, x + 1), *FEW, NONE, free=ROWS)


def test_an_item_becomes_a_size_and_a_factor():
    numbers = [(torch.randint(1, 9, (4,)),), (torch.zeros(4, dtype=torch.long),)]
    check(lambda x: (torch.arange(x.max().item()), x * x.sum().item(), x.max().item() * 2), *numbers)


def test_a_view_that_keeps_the_axes_needs_no_arithmetic():
    def heads(x):
        return x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2).reshape(x.shape[0], 2, x.shape[1], 4)

    model = model_of(heads, (torch.randn(2, 3, 8),), {0: {0: "batch", 1: "time"}})
    assert [node.op_type for node in model.graph if node.op_type != "Constant"] == ["Reshape", "Transpose"]
