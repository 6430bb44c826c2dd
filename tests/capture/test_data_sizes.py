"""Sizes that depend on values: `nonzero`, masks, `.item()`, `repeat_interleave`; empty results included."""

from __future__ import annotations

import pytest
import torch

import trueport
from tests.capture.helpers import FREE, assert_captured, assert_exported

ROWS = ({0: FREE},)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def both(model, args, others, *, dynamic_shapes=ROWS, export=True):
    assert_captured(model, args, others, dynamic_shapes=dynamic_shapes)
    if export:
        assert_exported(model, args, others, dynamic_shapes=dynamic_shapes)


MANY = [(x(7, 3),), (x(2, 3),), (-x(4, 3).abs() - 1,), (x(4, 3).abs() + 1,), (x(1, 3),), (x(0, 3),)]


def test_nonzero_in_both_forms():
    def model(y):
        i, j = torch.nonzero(y > 0, as_tuple=True)
        return torch.nonzero(y > 0), i + j

    both(model, (x(4, 3),), MANY)


def test_argwhere_and_where_with_one_argument():
    def model(y):
        return torch.argwhere(y > 0.5), torch.where(y > 0.5)[0]

    both(model, (x(4, 3),), MANY)


def test_a_mask_as_an_index():
    def model(y):
        kept = y[y[:, 0] > 0]
        return kept * 2, kept.sum(0), y[y > 0]

    both(model, (x(4, 3),), MANY)


def test_masked_select():
    def model(y):
        return torch.masked_select(y, y > 0).exp()

    both(model, (x(4, 3),), MANY)


def test_two_masks_of_one_size_join():
    """Both selections have as many rows as the mask has ones: torch cannot know it, eager never complains."""

    def model(y):
        mask = y[:, 0] > 0
        return y[mask] + y[mask].flip(1)

    both(model, (x(4, 3),), MANY)


def test_what_a_mask_selects_goes_back_to_its_place():
    def model(y):
        mask = y > 0
        out = torch.zeros_like(y)
        out[mask] = y[mask] * 10
        return out

    both(model, (x(4, 3),), MANY)


def test_an_item_as_a_size():
    def model(y, n):
        return y[: n.item()], torch.zeros(n.item(), 2), torch.arange(n.item())

    others = [(x(5, 3), torch.tensor(k)) for k in (0, 1, 2, 5)]
    both(model, (x(5, 3), torch.tensor(3)), others, dynamic_shapes=None)


def test_an_item_as_a_factor():
    def model(y, scale, count):
        return y * scale.item() + count.item(), y / (count.item() + 1), y**2 * int(scale)

    others = [(x(3), torch.tensor(s), torch.tensor(c)) for s, c in ((0.25, 7), (-1.5, 0), (3.0, 1))]
    both(model, (x(3), torch.tensor(2.5), torch.tensor(2)), others, dynamic_shapes=None)


def test_a_bool_item():
    def model(y, flag):
        return y * flag.item(), torch.where(flag, y, -y)

    both(model, (x(3), torch.tensor(True)), [(x(3), torch.tensor(False))], dynamic_shapes=None)


def test_an_item_of_a_computed_maximum():
    def model(lengths):
        longest = int(lengths.max())
        return torch.arange(longest).unsqueeze(0) < lengths.unsqueeze(1)

    others = [(torch.tensor(v),) for v in ([1], [5, 2], [0, 0, 0], [3, 3, 3, 1])]
    both(model, (torch.tensor([2, 4, 1]),), others)


def test_arange_over_items_with_a_step():
    def model(start, end):
        return torch.arange(start.item(), end.item(), 2) * 3

    pairs = [(0, 7), (2, 3), (5, 5), (-4, 4)]
    others = [(torch.tensor(a), torch.tensor(b)) for a, b in pairs]
    both(model, (torch.tensor(1), torch.tensor(6)), others, dynamic_shapes=None)


def test_repeat_interleave_by_a_tensor():
    def model(y, times):
        return torch.repeat_interleave(y, times, dim=0)

    others = [(x(3, 2), torch.tensor(t)) for t in ([0, 0, 0], [1, 0, 5], [1, 1, 1])]
    both(model, (x(3, 2), torch.tensor([2, 1, 3])), others, dynamic_shapes=None)


def test_repeat_interleave_where_values_give_both_lengths():
    """The place of each row within its group: there are as many starts as counts, which torch cannot tell."""

    def model(y, group):
        count = torch.unique(group, return_counts=True)[1]
        starts = torch.cat([count.new_zeros(1), count.cumsum(0)[:-1]])
        return torch.arange(y.shape[0]) - starts.repeat_interleave(count)

    groups = ([3, 1, 3, 2], [5], [1, 1, 1], [4, 3, 2, 1, 0])
    first, *others = [(torch.zeros(len(group)), torch.tensor(group)) for group in groups]
    both(model, first, others, dynamic_shapes=({0: "n"}, {0: "n"}))


def test_repeat_interleave_by_a_number():
    def model(y):
        return y.repeat_interleave(3, dim=0)

    both(model, (x(4, 3),), MANY)


def test_unique_with_its_inverse_and_counts():
    def model(ids):
        values, inverse, counts = torch.unique(ids, return_inverse=True, return_counts=True)
        return values[inverse], values, counts

    others = [(torch.tensor(v),) for v in ([1], [5, 5, 5], [9, 1, 9, 1, 4])]
    both(model, (torch.tensor([3, 1, 3, 2]),), others)


def test_split_by_sizes_from_a_tensor():
    def model(y, sizes):
        first, second = y.split(sizes.tolist())
        return first.sum(0), second * 2

    others = [(x(5, 3), torch.tensor(s)) for s in ([1, 4], [0, 5], [5, 0])]
    both(model, (x(5, 3), torch.tensor([2, 3])), others, dynamic_shapes=None)


def test_split_by_sizes_from_a_size():
    def model(y):
        half = y.shape[0] // 2
        first, second = torch.split(y, [half, y.shape[0] - half])
        return first, second

    both(model, (x(4, 3),), [(x(7, 3),), (x(1, 3),), (x(0, 3),)])


def test_split_into_a_number_of_parts():
    def model(y):
        first, second, third = y.tensor_split(3)
        left, right = y.chunk(2)
        return first, second, third, left, right

    assert_captured(model, (x(6, 3),), [(x(7, 3),), (x(5, 3),), (x(8, 3),)], dynamic_shapes=ROWS)


def test_tolist_of_an_input():
    def model(y, where):
        row, column = where.tolist()
        return y[row, column] * row, row + column

    others = [(x(4, 3), torch.tensor(w)) for w in ([0, 0], [3, 1])]
    both(model, (x(4, 3), torch.tensor([1, 2])), others, dynamic_shapes=None)


def test_topk_by_an_item():
    def model(y, k):
        return torch.topk(y, k.item()).values

    both(model, (x(5), torch.tensor(3)), [(x(5), torch.tensor(k)) for k in (1, 5, 2)], dynamic_shapes=None)


def test_bincount_and_its_size():
    def model(ids):
        return torch.bincount(ids)

    others = [(torch.tensor(v),) for v in ([0], [5, 5], [1, 2, 3, 4])]
    both(model, (torch.tensor([1, 3, 3]),), others, export=False)


def test_the_number_of_kept_rows_returned():
    def model(y):
        kept = y[y[:, 0] > 0]
        return kept.shape[0], kept.shape[0] * 2 + 1

    both(model, (x(4, 3),), MANY)


# --- the example's own sizes 0 and 1


def test_an_example_of_one_row_leaves_the_rows_free():
    def model(y):
        return torch.cat([y, y]).mean(0), y.reshape(y.shape[0], -1), y + y[:1]

    both(model, (x(1, 3),), [(x(4, 3),), (x(2, 3),)])


def test_an_example_of_no_rows_leaves_the_rows_free():
    def model(y):
        return y * 2, y.sum(0), y.unsqueeze(1).expand(-1, 4, -1)

    both(model, (x(0, 3),), [(x(4, 3),), (x(1, 3),)])


def test_a_free_size_of_one_still_broadcasts():
    """`y` with n=1 broadcasts against anything in eager; a graph traced with n=4 must do so, too."""

    def model(y, z):
        return y * z

    both(model, (x(4, 3), x(4, 3)), [(x(1, 3), x(1, 3)), (x(2, 3), x(2, 3))], dynamic_shapes=({0: "n"}, {0: "n"}))


def test_squeeze_of_a_free_axis_is_settled_by_eager():
    """`squeeze()` drops an axis of 1, so what it returns has another rank there: told, never silent."""

    def model(y):
        return y.squeeze(0) * 2

    report = trueport.check(model, (x(4, 3),), dynamic_shapes=({0: FREE},))
    assert [found.code for found in report.diagnostics if found.is_error]


def test_a_slice_of_one_broadcasts_against_the_whole():
    def model(y):
        return y + y[:1], y - y[-1:], y * y[:, :1], (y[:1] + y[-1:]).expand(y.shape[0], -1)

    both(model, (x(4, 3),), [(x(7, 3),), (x(1, 3),), (x(2, 3),)])


def test_a_slice_of_one_kept_row_broadcasts_against_the_kept():
    def model(y):
        kept = y[y[:, 0] > 0]
        return kept - kept[:1]

    both(model, (x(4, 3),), MANY)


@pytest.mark.parametrize("squeezed", [lambda x: x.squeeze(), lambda x: x.squeeze(1)])
def test_squeeze_of_a_free_axis_names_the_size_and_a_way_out(squeezed):
    """pytorch/pytorch#36796. With one column, eager drops the axis: no ONNX value has now one axis and now two."""

    def model(x):
        return squeezed(x) * 2

    shapes = ({1: torch.export.Dim.DYNAMIC},)
    (found,) = [d for d in trueport.check(model, (x(3, 4),), dynamic_shapes=shapes).diagnostics if d.is_error]
    assert found.code == "TP803" and 'Dim("x_dim1", min=2)' in found.fix
    never_one = ({1: torch.export.Dim("x_dim1", min=2)},)
    assert trueport.export(model, (x(3, 4),), dynamic_shapes=never_one).report.verified


def test_attention_in_windows_as_large_as_a_branch_says():
    """Whether a mask fits such a query only the run tells, and it changes nothing about the result (Swin)."""

    def model(x, bias):
        window = 4
        if x.sum() > 100:
            window = x.shape[0]
        windows = x.reshape(-1, 1, window * window, 2)
        return torch.nn.functional.scaled_dot_product_attention(windows, windows, windows, attn_mask=bias)

    bias = torch.randn(1, 1, 16, 16)
    assert_captured(
        model,
        (x(8, 8, 2), bias),
        [(x(4, 12, 2), bias), (x(4, 4, 2) + 99, bias)],
        dynamic_shapes=({0: FREE, 1: FREE}, None),
    )


def test_attention_over_caches_that_grow_in_a_loop():
    """Keys and values grow alike, and nothing tells so: whether there is a value for each key was asked (TP101)."""

    def model(x):
        keys, values = x, x + 1
        out = x[:, :, :1]
        while out.sum() < 50 and keys.shape[2] < 9:
            keys, values = torch.cat([keys, out], 2), torch.cat([values, out + 1], 2)
            out = torch.nn.functional.scaled_dot_product_attention(out, keys, values) + 0.5
        return out

    free = ({2: FREE},)
    assert_exported(model, (x(1, 2, 3, 4),), [(x(1, 2, 5, 4),), (x(1, 2, 1, 4),)], dynamic_shapes=free)


def test_attention_over_the_rows_of_what_a_mask_kept():
    """Torch asks whether there are rows at all. `n // 8` is 0 for few numbers, so no example answered (TP304)."""

    def model(y):
        kept = y[y > 0]
        rows = kept[: kept.shape[0] // 8 * 8].view(1, 1, -1, 8)
        return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)

    others = [(x(9, 30),), (x(2, 30).abs(),), (x(1, 30),), (-x(2, 30).abs(),), (x(0, 30),)]
    both(model, (x(4, 30),), others)


@pytest.mark.parametrize("written", [False, True])
def test_a_row_of_sizes_is_the_shape_of_a_view(written):
    """Each size is a tensor at a place in memory that the round tells, and torch asked for that place (TP901)."""

    def model(y, sizes):
        grids = [(size[0] // 2, size[1] // 2) for size in sizes]
        out = []
        for i, piece in enumerate(y.split([h * w for h, w in grids])):
            h, w = grids[i]
            grid = torch.reshape(input=piece, shape=(h, w, 3)) * 1 if written else piece.view(h, w, 3)
            if written:
                grid[0] = 0
            out.append(grid.cumsum(1).transpose(0, 1).reshape(-1, 3))
        return torch.cat(out)

    def call(*sizes):
        return x(sum(h * w // 4 for h, w in sizes), 3), torch.tensor(sizes)

    others = [call((2, 2)), call((4, 2), (2, 8), (6, 6)), call((10, 4), (2, 2))]
    assert_captured(model, call((8, 8), (4, 8)), others, dynamic_shapes=({0: FREE}, {0: FREE}))


def test_attention_over_what_was_padded_by_a_number_of_either_sign():
    """A size is 0 or more, also where a number is in it that might be negative; torch asked in vain (TP304)."""

    def model(y):
        more = -(-y.shape[0] // 4) * 4 - y.shape[0]
        if y.sum() > 0:
            more = more + 1
        y = torch.nn.functional.pad(y, (0, 0, 0, more))
        rows = y[None, None]
        return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)

    both(model, (x(5, 3).abs(),), [(x(7, 3).abs(),), (-x(4, 3).abs(),), (x(1, 3),)])
