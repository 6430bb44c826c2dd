"""`.tolist()` of a tensor whose length is open: a list of numbers, with all that a list of rewritten code can do."""

from __future__ import annotations

import pytest
import torch

from tests.control_flow.kept_alive import assert_kept_alive


def chosen_rows(x):
    total = x.new_zeros(4)
    for i in (x[:, 0] > 0).nonzero().flatten().tolist():
        total = total * 0.5 + x[i] * i
    return total


def pairs(x):
    total = x.sum() * 0
    for i, j in (x > 1).nonzero().tolist():
        total = total + x[i, j] * (i + 2 * j)
    return total


def longest(x):
    counts = (x > 0).sum(1).tolist()
    return torch.zeros(max(counts) + len(counts)), x * sum(counts)


def comprehension(x):
    counts = (x > 0).sum(1).tolist()
    return torch.stack([x[i].sum() * count for i, count in enumerate(counts)])


def back_to_a_tensor(x):
    return torch.tensor((x > 0).sum(1).tolist()) * 2


def pieces(x):
    parts, at = [], 0
    for length in (x[:, 0] > 0).long().tolist():
        parts.append(x[at : at + length].sum(0))
        at = at + length
    return torch.stack(parts)


def decided_by_floats(x):
    total = 0.0
    for value in x[:, 1].tolist():
        if value > 0:
            total += value
    return x * total


def ends(x):
    best = x.argmax(1).tolist()
    return x[0, best[0]] + x[-1, best[-1]]


def as_an_index(x):
    order = x[:, 0].argsort().tolist()
    y = x[order] * 2
    y[order] = y[order] + x
    return y, x[order, 1]


def segments(x):
    """Pairs of numbers, of which the last is replaced while they are collected."""
    found = [(0, 1)]
    for i, row in enumerate(x):
        if row[0] > 0 and i - found[-1][1] < 2:
            found[-1] = (found[-1][0], i)
        else:
            found.append((i, i + 1))
    return torch.tensor(found)


def nested_tuples(x):
    return torch.tensor([((i, True), [float(row[0]), row.sum()]) for i, row in enumerate(x)])


USES = (
    chosen_rows,
    pairs,
    longest,
    comprehension,
    back_to_a_tensor,
    pieces,
    decided_by_floats,
    ends,
    as_an_index,
    segments,
    nested_tuples,
)


@pytest.mark.parametrize("model", USES)
def test_uses_of_such_a_list(model):
    torch.manual_seed(0)
    others = [(torch.randn(n, 4),) for n in (1, 3, 9)] + [(-torch.ones(2, 4),)]
    assert_kept_alive(model, (torch.randn(5, 4),), others, dynamic_shapes={"x": {0: torch.export.Dim("rows", min=1)}})


@pytest.mark.parametrize("model", [lambda x: x.argmax(1).tolist(), lambda x: x.tolist(), lambda x: (x > 0).tolist()])
def test_it_is_returned_as_a_tensor(model):
    program = assert_kept_alive(model, *fives_and_others(), dynamic_shapes={"x": {0: "rows"}}, verify=True)
    assert not any(output.is_sequence for output in program.report.outputs)


def fives_and_others():
    torch.manual_seed(0)
    return (torch.randn(5, 4),), [(torch.randn(n, 4),) for n in (0, 1, 9)]


@pytest.mark.parametrize("times", [lambda x: (x > 0).sum(), lambda x: x.sum() > 0], ids=["number", "truth"])
def test_a_list_is_repeated_as_often_as_a_tensor_says(times):
    def model(x):
        numbers = [1.5, 2.5] * times(x)
        numbers += [0.5] * times(x)
        numbers.extend([1.0] * times(x))
        return x * sum(numbers) + len(numbers) + sum([3] * times(x))

    assert_kept_alive(model, (torch.ones(2, 3),), [(torch.ones(2, 3) * k,) for k in (-1, 0, 2)])
