"""Reading and writing by positions and masks, sorting: any number of places, none included."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.faithful import faithful
from tests.lower.through_onnx import check, model_of

ROWS = {0: {0: "rows"}}
BOTH = {0: {0: "rows"}, 1: {0: "rows"}}
LONG = torch.long


def places(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=LONG)


READING = {
    "rows": lambda x, j: x[j],
    "columns": lambda x, j: x[:, j],
    "points": lambda x, j: x[j, j],
    "the last axis": lambda x, j: x[..., j],
    "neighbouring axes": lambda x, j: x[:, j, j],
    "axes apart": lambda x, j: x[j, :, j],
    "a number and positions": lambda x, j: x[:, j, 0],
    "a grid": lambda x, j: x[:, j[:, None], j[None]],
    "from the end": lambda x, j: x[-1 - j],
    "selected": lambda x, j: (x.index_select(1, j), x.take(j)),
}


@pytest.mark.parametrize("forward", READING.values(), ids=READING)
def test_reading_by_positions(forward):
    free = {0: {0: "rows"}, 1: {0: "places"}}
    inputs = [
        (torch.randn(5, 5, 5), places(4, 0, 3)),
        (torch.randn(6, 5, 5), places(2)),
        (torch.randn(6, 5, 5), places()),
    ]
    check(forward, *inputs, free=free)


MASKED = {
    "elements": lambda x, m: x[m],
    "columns": lambda x, m: x[:, m[0]],
    "rows, then a slice": lambda x, m: x[m[:, 0], 1:],
    "selected": lambda x, m: x.masked_select(m),
    "positions": lambda x, m: (m.nonzero(), x.nonzero(), torch.where(m)),
    "a fixed number of positions": lambda x, m: torch.nonzero_static(m, size=3),
    "one row's mask for all": lambda x, m: x.masked_select(m[:1]),
}


@pytest.mark.parametrize("forward", MASKED.values(), ids=MASKED)
def test_reading_by_a_mask(forward):
    inputs = [(torch.randn(n, 5), torch.randn(n, 5) > level) for n, level in ((4, 0), (6, 0), (3, 9), (2, -9))]
    check(forward, *inputs, free=BOTH)


def test_a_mask_of_the_leading_axes():
    inputs = [(torch.randn(n, 5, 3), torch.randn(n, 5) > level) for n, level in ((4, 0), (6, 9))]
    check(lambda x, m: (x[m], x[m, 0], x[m][:, 1]), *inputs, free=BOTH)


def test_a_mask_of_rows_is_one_node():
    model = model_of(lambda x, m: x[m], (torch.randn(4, 2), torch.randn(4) > 0), BOTH)
    assert [node.op_type for node in model.graph] == ["Compress"]


def write(x: torch.Tensor, at: object, value: object) -> torch.Tensor:
    out = x.clone()
    out[at] = value
    return out


WRITING = {
    "a number where a mask is": lambda x, m, j: write(x, m, 0.5),
    "values where a mask is": lambda x, m, j: write(x, m, x[m] * 3),
    "rows": lambda x, m, j: write(x, j, x[j] * 2),
    "columns": lambda x, m, j: write(x, (slice(None), j), 1.0),
    "points": lambda x, m, j: write(x, (j, j), x[j, 0]),
    "rows of a slice": lambda x, m, j: write(x, (j, slice(1, None)), x[j, :1]),
    "a slice": lambda x, m, j: write(x, slice(1, None), x[1:] + 1),
    "a column": lambda x, m, j: write(x, (slice(None), 1), 7),
    "masked rows of a column": lambda x, m, j: write(x, (m[:, 0], 0), -1.0),
}


@pytest.mark.parametrize("forward", WRITING.values(), ids=WRITING)
def test_writing(forward):
    free = {0: {0: "rows"}, 1: {0: "rows"}, 2: {0: "places"}}
    check(
        forward,
        (torch.randn(5, 5), torch.randn(5, 5) > 0, places(3, 1)),
        (torch.randn(6, 5), torch.randn(6, 5) > 0, places(0, 2, 4)),
        (torch.randn(6, 5), torch.randn(6, 5) > 9, places()),
        free=free,
    )


def test_adding_up_at_the_same_place():
    def forward(x, j, v):
        rows = x.index_put((j,), v, accumulate=True)
        points = x.index_put((j, j), v[:, 0], accumulate=True)
        ones = x.index_put((j,), torch.tensor(1.0), accumulate=True)
        return rows, points, ones, x.index_add(0, j, v, alpha=2)

    free = {1: {0: "places"}, 2: {0: "places"}}
    check(
        forward,
        (torch.randn(5, 5), places(3, 1, 3), torch.randn(3, 5)),
        (torch.randn(5, 5), places(0, 0), torch.randn(2, 5)),
        free=free,
    )


def test_scattering_into_a_mask():
    inputs = [(torch.randn(n, 5), torch.randn(n, 5) > level, torch.randn(40)) for n, level in ((4, 0), (6, 0), (6, 9))]
    check(lambda x, m, source: x.masked_scatter(m, source), *inputs, free=BOTH)


@pytest.mark.parametrize("reduction", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduction, include_self):
    def forward(x, j, source):
        whole = (x * 5).long().scatter_reduce(0, j, (source * 5).long(), reduction, include_self=include_self)
        return x.scatter_reduce(0, j, source, reduction, include_self=include_self), whole

    free = {0: {0: "rows"}, 1: {0: "places"}, 2: {0: "sources"}}
    inputs = [
        (torch.randn(n, 5), torch.randint(0, 4, (k, 5)), torch.randn(m, 5))
        for n, k, m in ((4, 6, 6), (7, 2, 3), (4, 0, 1))
    ]
    check(forward, *inputs, free=free)


def test_scatter_gather_copy_and_fill():
    def forward(x, j, source):
        written = x.scatter(1, j, source), x.scatter(1, j, 2.0), x.scatter_add(0, j, source)
        return *written, x.gather(1, j), x.index_copy(0, j[0, :2], source[:2]), x.index_fill(0, j[0], 9.0)

    check(forward, (torch.randn(4, 5), torch.tensor([[0, 1, 2]] * 3), torch.randn(3, 5)))


def test_sorting_and_ranks():
    def forward(x):
        ranks = x.topk(2, 0), x.topk(1, 1, largest=False), x.kthvalue(2, 0), x.median(0), x.median()
        return x.sort(), x.sort(0, descending=True), x.argsort(1), torch.msort(x), *ranks

    check(forward, (torch.randn(4, 5),), (torch.randn(7, 5),), free=ROWS)


def test_equals_keep_their_order():
    check(
        lambda x: (x.sort(stable=True), (x > 0).sort(dim=0, stable=True), x.argsort(stable=True)),
        (torch.randint(0, 3, (9, 9)),),
    )


def test_a_free_number_of_the_largest():
    inputs = [(torch.randn(n),) for n in (9, 15, 4, 2)]
    check(lambda x: torch.topk(x, x.shape[0] // 3), *inputs, free=ROWS)


def test_what_is_unique():
    def forward(x):
        run = torch.unique_consecutive(x.sort()[0], return_inverse=True, return_counts=True)
        return torch.unique(x, return_inverse=True, return_counts=True), run

    check(forward, *[(torch.randint(0, 5, (n,)),) for n in (8, 20, 0)], free=ROWS)
    check(lambda x: torch.unique(x, dim=0, return_inverse=True), (torch.randint(0, 2, (8, 2)),))


def test_where_to_insert():
    def forward(x, borders):
        both = [torch.bucketize(x, borders, right=right) for right in (False, True)]
        return *both, torch.searchsorted(borders, x, side="right", out_int32=True)

    borders = torch.tensor([-1.0, 0.0, 0.0, 1.0])
    free = {0: {0: "rows"}}
    check(
        forward, (torch.tensor([[-2.0, -1.0, 0.0], [0.5, 1.0, 2.0]]), borders), (torch.zeros(0, 3), borders), free=free
    )


def test_embedding_and_one_hot():
    layer = torch.nn.Embedding(10, 4, padding_idx=0)
    check(
        lambda i: (layer(i), F.one_hot(i, 10)),
        (torch.randint(0, 10, (2, 3)),),
        (torch.randint(0, 10, (5, 3)),),
        free=ROWS,
    )


def test_take_along_dim_broadcasts_open_sizes():
    faithful(
        lambda x: (torch.take_along_dim(x, x.argsort(1), 1), torch.take_along_dim(x[:1], x.argsort(1)[:, :1], 1)),
        torch.randn(4, 5, 3),
        free=({0},),
    )


def test_indices_of_a_triangle_of_open_size():
    faithful(
        lambda x: (torch.tril_indices(x.shape[0], x.shape[1], -1), torch.triu_indices(x.shape[0], x.shape[0], 1)),
        torch.randn(4, 5),
        free=({0, 1},),
    )


def test_a_number_may_say_how_many_of_the_largest_are_wanted():
    program = faithful(lambda x, k: (x.topk(k), torch.zeros(k)), torch.randn(4, 5), 2, free=({0}, None))
    x = torch.randn(3, 5)
    torch.testing.assert_close(program(x, 4)[0][0], x.topk(4)[0])


def test_bincount_with_weights():
    counted = torch.tensor([3, 1, 1, 2, 3])
    faithful(lambda x, w: (torch.bincount(x), torch.bincount(x, w), torch.bincount(x, w, 8)), counted, torch.rand(5))


def test_an_index_that_holds_nothing_has_any_axes():
    faithful(lambda x, index: x.gather(0, index), torch.randn(5), torch.zeros(2, 0, dtype=torch.int64))


def test_the_largest_in_any_order():
    """Eager leaves the order open, and has one of its own: the call by itself was accused (TP812)."""
    faithful(lambda x: x.topk(6, sorted=False).values.sum(-1), torch.randn(4, 33), free=({0},))
