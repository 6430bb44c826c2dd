"""Decisions on free sizes: kept alive like those on tensors, on both sides and for the empty batch."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.control_flow.kept_alive import FREE, ROWS, assert_kept_alive, rows

BOTH = ({0: FREE, 1: FREE},)


def by_rows(model, *counts, **options):
    example, *others = rows(*(counts or (4, 1, 6, 7, 9, 0)))
    return assert_kept_alive(model, example, others, dynamic_shapes=ROWS, **options)


def pictures(*sizes):
    return [(torch.randn(1, 2, h, w),) for h, w in sizes]


def test_larger_than_a_number():
    """The peers' largest silent failure: only one side is exported."""

    def model(x):
        if x.shape[0] > 6:
            return x * 2
        return x - 1

    by_rows(model, ifs=1, verify=True)


def test_every_way_of_asking():
    def model(x):
        if len(x) > 6 or x.size(0) == 1 or x.numel() == 0:
            return x * 2
        return x - 1

    by_rows(model)


def test_padding_to_a_multiple():
    def model(x):
        if x.size(0) % 4 != 0:
            x = F.pad(x, (0, 0, 0, 4 - x.size(0) % 4))
        return x.reshape(-1, 4, 3).sum(1)

    by_rows(model, 4, 8, 9, 7, 1, ifs=1)


def test_height_against_width():
    def model(x):
        h, w = x.shape[-2:]
        if h != w:
            side = max(h, w)
            x = F.pad(x, (0, side - w, 0, side - h))
        return x

    example, *others = pictures((3, 4), (4, 3), (5, 5), (1, 7))
    assert_kept_alive(model, example, others, dynamic_shapes=({2: FREE, 3: FREE},), ifs=1)


def test_landscape_or_portrait():
    def model(x):
        if x.shape[2] > x.shape[3]:
            x = x.transpose(2, 3)
        return x * 2

    example, *others = pictures((3, 4), (4, 3), (5, 5), (1, 7))
    assert_kept_alive(model, example, others, dynamic_shapes=({2: FREE, 3: FREE},), ifs=1)


def test_the_empty_batch_takes_the_right_arm():
    def model(x):
        if x.shape[0] > 0:
            return x.max()
        return torch.full((), -1.0)

    by_rows(model, ifs=1)


def test_a_size_that_is_one_where_it_is_squeezed():
    def model(x):
        if x.shape[0] == 1:
            return x.squeeze(0).sum().reshape(1)
        return x.sum().reshape(1) * 2

    assert_kept_alive(model, *rows(4), rows(0, 1, 2), dynamic_shapes=ROWS)


def test_the_sizes_of_the_result_are_merged():
    def model(x):
        if x.shape[0] > 6:
            y = x[:6]
        else:
            y = x
        return y.sum(1), y.shape[0] * 2

    by_rows(model, ifs=1)


def test_a_size_as_a_number():
    def model(x):
        n = x.shape[0]
        scale = 1.0 / n if n > 0 else 0.0
        return x * scale * min(n, 5), n

    by_rows(model)


def test_truncation_to_a_maximum():
    class Net(nn.Module):
        limit = 5

        def __init__(self):
            super().__init__()
            self.register_buffer("positions", torch.arange(12.0).reshape(12, 1))

        def forward(self, x):
            n = x.shape[0]
            if n > self.limit:
                x = x[-self.limit :]
            return x + self.positions[: x.shape[0]]

    by_rows(Net().eval(), ifs=1)


def test_chunks_of_a_long_input():
    def model(x):
        outs = []
        for start in range(0, x.shape[0], 3):
            outs.append(x[start : start + 3].cumsum(0))
        return torch.cat(outs)

    by_rows(model, 4, 1, 6, 7, 9, loops=1)


def test_two_sizes_and_a_tensor():
    def model(x):
        if x.shape[0] >= x.shape[1] and x.sum() > 0:
            return x.sum(1)
        return x.sum(0)

    others = [(torch.ones(5, 5),), (torch.ones(2, 7),), (-torch.ones(7, 2),), (torch.ones(7, 2),)]
    assert_kept_alive(model, (torch.ones(4, 3),), others, dynamic_shapes=BOTH)


def test_a_shape_compared_as_a_whole():
    def model(x, y):
        if x.shape == y.shape:
            return (x + y).sum()
        return x.sum() - y.sum()

    given = [(torch.randn(a, 3), torch.randn(b, 3)) for a, b in ((4, 5), (3, 3), (1, 7), (7, 7))]
    assert_kept_alive(model, given[0], given[1:], dynamic_shapes=({0: FREE}, {0: FREE}))


def test_torch_size_in_a_test_of_membership():
    def model(x):
        return x * 2 if x.shape[0] in (1, 4) else x - 1

    by_rows(model)


def test_an_arm_that_needs_more_rows_than_the_example_has():
    """Torch looked at the example's size, which does not take the arm: the export ended with a fault of ours."""

    def model(x):
        if x.shape[0] >= 7:
            return x[6] + x[:6].reshape(2, 3, -1).sum((0, 1))
        if x.shape[0] // 2 == 2 and x.shape[0] % 2 == 1:
            return x[4]
        return x.sum(0)

    by_rows(model, 3, 0, 1, 5, 7, 9)


def test_an_arm_that_is_for_one_size_and_one_for_even_ones():
    def model(x):
        if x.shape[0] == 5:
            return (x + torch.arange(5.0)[:, None]).sum(0)
        if x.shape[0] % 4 == 0:
            return x.reshape(4, -1).sum(0)[:1].sum() + x.sum(0)
        return -x.sum(0)

    by_rows(model, 3, 0, 1, 4, 5, 8)


def test_an_item_of_a_list_that_has_as_many_as_a_number_says():
    """`out[0]` was taken for a decision by n (TP205); where there are too few items, eager raises."""

    def model(x, n: int):
        out = []
        for i in range(n):
            out.append(x * i)
        first = out[0] if len(out) > 0 else x
        return first + (out[2] if len(out) > 2 else -x)

    assert_kept_alive(model, (torch.randn(2, 3), 1), [(torch.randn(2, 3), n) for n in (0, 2, 3, 5)])


def test_an_arm_that_needs_more_rows_and_that_values_decide_too():
    """No size that takes the arm follows from the test, which is a tensor's: others are tried."""

    def model(x):
        last = 4 if x.shape[0] > 4 else 0
        h = x.sum(0)
        if x.sum() > 0 and x.shape[0] > 3:
            h = h + x[3]
        if last and x.sum() < 100:
            h = h - x[4] * x[: 2 * last // 2].reshape(2, 2, -1).sum((0, 1))
        return h

    by_rows(model, 3, 0, 1, 4, 5, 8)


def test_a_size_that_only_one_arm_has():
    """k2-fsa/icefall, zipformer: `5 - n` is a size where n < 5, and none where the other arm runs."""

    def model(x):
        if x.shape[0] >= 5:
            return x[:5]
        shape = list(x.shape)
        shape[0] = 5 - shape[0]
        zeros = torch.zeros(shape, dtype=x.dtype)
        return torch.cat([x, zeros])

    by_rows(model, 6, 3, 5, 9, 1, 0, verify=True)
