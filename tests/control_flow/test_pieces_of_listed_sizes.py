"""`x.split(lengths.tolist())`: as many pieces as there are lengths, each as long as its number says."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from tests.control_flow.kept_alive import FREE, assert_kept_alive


def on(model, *lengths, **options):
    torch.manual_seed(0)
    given = [(torch.randn(sum(each), 3), torch.tensor(each)) for each in ([2, 1, 3], *lengths)]
    return assert_kept_alive(model, given[0], given[1:], dynamic_shapes=({0: FREE}, {0: FREE}), **options)


ANY = ([4], [1, 3], [0, 2, 0, 1, 5])


@pytest.mark.parametrize(
    "model",
    [
        lambda x, n: torch.stack([part.sum(0) for part in x.split(n.tolist())]),
        lambda x, n: torch.cat(torch.split(x, [int(each) for each in n])[::-1]),
        lambda x, n: torch.cat([part.flip(0) * i for i, part in enumerate(torch.split(x, tuple(n.tolist())))]),
        lambda x, n: torch.stack([a.sum() + b for a, b in zip(x.split(n.tolist(), dim=0), n, strict=True)]),
        lambda x, n: (x.split(n.tolist())[0].sum(0), x.split(n.tolist())[-1].sum(0), len(x.split(n.tolist()))),
        lambda x, n: torch.cat([(part @ part.T).softmax(-1) @ part for part in x.split(n.tolist())]),
        lambda x, n: torch.cat(x.split(n.tolist())[1:] + (x,)),  # noqa: RUF005 (as users write)
        lambda x, n: torch.stack([part.sum(1) for part in x.T.split(n.tolist(), 1)]),
    ],
    ids="stacked backwards numbered zipped indexed attention sliced other-axis".split(),
)
def test_what_can_be_done_with_them(model):
    on(lambda x, n: model(x, n), *ANY)


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"padding_value": -1.0, "padding_side": "left"}],
    ids=["plain", "batch first", "left"],
)
def test_they_are_padded(options):
    on(lambda x, n: pad_sequence(x.split(n.tolist()), **options), *ANY)


def test_what_a_loop_made_of_them_is_padded():
    def model(x, n):
        padded = pad_sequence([part.cumsum(0) for part in x.split(n.tolist()) if len(part) != 1], batch_first=True)
        return padded, padded.shape[1]

    on(model, [4], [1, 3], [0, 2, 0, 1, 5])


def test_rows_of_one_length_are_padded_to_that():
    def model(x, n):
        return pad_sequence([row * 2 for row in x]), n

    on(model, *ANY)


def test_a_queue_of_them_is_worked_off_until_a_sum_is_reached():
    def model(x, n):
        waiting = [part * 2 for part in x.split(n.tolist())]
        total = torch.zeros(3)
        while waiting:
            total = total * 0.5 + waiting.pop(0).sum(0)
            if total.sum() > 2:
                break
        return total, len(waiting)

    on(model, *ANY)
