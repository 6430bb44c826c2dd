"""`split`, `chunk` and `unbind` along a free axis: how many pieces there are is open."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import FREE, ROWS, assert_kept_alive, rows

ANY = (1, 5, 7, 12)
AT_LEAST_TWO = (2, 3, 5, 8)


def on(model, counts, **options):
    return assert_kept_alive(model, *rows(4), rows(*counts), dynamic_shapes=ROWS, **options)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.cat([part.flip(0) for part in x.split(2)]),
        lambda x: torch.stack([part.sum(0) for part in torch.split(x, 3, dim=0)]),
        lambda x: (x.split(2)[0].sum(0) + x.split(2)[-1].mean(0), len(x.split(2))),
        lambda x: torch.cat(x.chunk(4)[::-1]),
        lambda x: torch.cat([part * i for i, part in enumerate(torch.chunk(x, 3))]),
        lambda x: torch.stack([row.cumsum(0) for row in torch.unbind(x)], 1),
        lambda x: torch.cat(x.split(2)) + torch.stack(x.unbind(0)),
        lambda x: torch.cat([a + b.sum() for a, b in zip(x.split(2), x.flip(0).split(2), strict=True)]),
        lambda x: sum(part.sum(0) for part in x.split(2)),
        lambda x: torch.cat([*x.split(2)[1:], x]),
    ],
    ids="concatenated stacked indexed backwards numbered rows joined zipped summed sliced".split(),
)
def test_what_can_be_done_with_pieces(model):
    on(lambda x: model(x), ANY)


def test_a_loop_over_chunks_has_as_many_rounds_as_there_are_chunks():
    """Five rows in four chunks are three chunks; no row gives four empty ones."""

    def model(x):
        count = 0
        total = x.sum(0)
        for part in x.chunk(4):
            count += 1
            total = total * 0.5 + part.sum(0)
        return total, count

    on(model, (0, *ANY), loops=1)


def test_a_list_of_pieces_that_is_changed():
    def model(x):
        pieces = list(x.split(2))
        pieces.reverse()
        pieces.append(x)
        return torch.cat(pieces)

    on(model, ANY)


def test_pieces_that_are_chosen():
    def model(x):
        kept = []
        for part in x.split(2):
            if part.sum() > 0:
                kept.append(part.sum(0))
        return torch.stack(kept) if len(kept) > 0 else x[:1]

    on(model, ANY)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: taken_apart(x.chunk(2)),
        lambda x: x.chunk(2)[0].sum(0) - x.chunk(2)[1].sum(0),
        lambda x: taken_apart(torch.split(x, x.shape[0] // 2 + 1)),
    ],
    ids=["chunk", "indexed", "split"],
)
def test_two_pieces(model):
    """Eager demands that there are two, so the rest may rely on it."""
    on(lambda x: model(x), AT_LEAST_TWO[1:])


def taken_apart(pieces):
    one, other = pieces
    return one.sum(0) - other.sum(0)


def test_the_first_and_the_rest():
    def model(x):
        first, *rest, last = x.split(2)
        for part in rest:
            first = first + part
        return first, last

    assert_kept_alive(model, *rows(8), rows(4, 6, 12), dynamic_shapes=ROWS)


def test_another_axis_and_a_traced_number_of_chunks():
    def model(x):
        total = x[:, :1] * 0
        for part in x.split(3, dim=1):
            total = total + part.sum(1, keepdim=True)
        for part in x.chunk(int((x > 0).sum()) + 1, dim=1):
            total = total * 0.5 + part.mean(1, keepdim=True)
        return total

    others = [(torch.randn(2, n),) for n in (1, 7, 9)]
    assert_kept_alive(model, (torch.randn(2, 4),), others, dynamic_shapes=({1: FREE},))


def test_a_write_to_a_piece_reaches_the_tensor():
    def model(x):
        y = x.clone()
        for part in y.split(2):
            part.mul_(part.sum())
        return y

    on(model, ANY)


def test_as_many_chunks_as_were_put_together_are_no_list_of_open_length():
    """Their items differ in kind, and one is written to: eager has three chunks of n rows at any n."""

    def model(x):
        streams = torch.cat([x, x * 2, x + 1])
        main, *others = streams.chunk(3)
        kept = [torch.cat([main, each]).unsqueeze(0) for each in others]
        kept.append(main[None, :1])
        main += 1
        return torch.cat(kept[:-1]), kept[-1], streams, len(streams.chunk(3))

    on(model, (0, *ANY), loops=0)


def test_pieces_as_long_as_what_was_put_together():
    def model(x):
        return torch.stack(torch.cat([x, x * 2]).split(x.shape[0])).sum(0)

    size = torch.export.Dim("rows", min=1)
    assert_kept_alive(model, *rows(4), rows(*ANY), dynamic_shapes=({0: size},), loops=0)
    on(model, ANY)
