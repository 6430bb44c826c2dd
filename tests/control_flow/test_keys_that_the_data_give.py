"""Dicts, Counters and defaultdicts that are given keys which are known only when the model runs."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
import torch

from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive, numbers, refused

FREE = ({0: torch.export.Dim.DYNAMIC},)
IDS = [(torch.tensor(ids, dtype=torch.int64),) for ids in ([1, 2, 1, 0], [], [3], [4, 4, 4, 4, 4, 2])]


def counted(ids):
    counts = {}
    for t in ids.tolist():
        counts[t] = counts.get(t, 0) + 1
    return torch.tensor([counts.get(i, 0) for i in range(5)]), torch.tensor(len(counts))


def counted_by_a_defaultdict(ids):
    counts = defaultdict(int)
    for t in ids:
        counts[int(t)] += 1
    best, most = -1, 0
    for key, count in counts.items():
        if count > most:
            best, most = key, count
    return torch.tensor(best), torch.tensor(most)


def counted_by_a_counter(ids):
    counts = Counter(ids.tolist())
    return torch.tensor(counts[1]) + len(counts)


def the_most_common(ids):
    counts = Counter(ids.tolist())
    return torch.tensor([n for _, n in counts.most_common()], dtype=torch.int64) * counts.total()


def copied_and_emptied(ids):
    counts = {}
    for t in ids.tolist():
        counts[t] = counts.get(t, 0) + 1
    other = counts.copy()
    counts.clear()
    total = 0
    for key in other:
        total = total + key
    return torch.tensor(total + 10 * len(other) + len(counts) + (5 if 3 in other else 0))


def counted_beside_a_write(ids):
    counts, seen = {}, torch.zeros(5)
    for t in ids.tolist():
        counts[t] = counts.get(t, 0) + 1
        seen[t] += 1
    return torch.tensor(len(counts)), seen


def numbered(ids):
    places = {}
    for t in ids.tolist():
        if t not in places:
            places[t] = len(places)
    return torch.tensor([places[t] for t in ids.tolist()], dtype=torch.int64)


def distances(ids):
    last, total = {}, torch.zeros(())
    for i, t in enumerate(ids.tolist()):
        if t in last:
            total = total + (i - last[t])
        last[t] = i
    return total


def set_by_default(ids):
    seen = {}
    for t in ids.tolist():
        seen.setdefault(t, 0)
        seen[t] += 2
    return torch.tensor(sum(seen.values()))


@pytest.mark.parametrize(
    "model",
    [
        counted,
        counted_by_a_defaultdict,
        counted_by_a_counter,
        the_most_common,
        copied_and_emptied,
        counted_beside_a_write,
        numbered,
        distances,
        set_by_default,
    ],
)
def test_as_many_keys_as_the_data_have(model):
    assert_kept_alive(model, IDS[0], IDS, dynamic_shapes=FREE)


def test_tensors_under_such_keys():
    def model(ids, x):
        sums = {}
        for t, row in zip(ids.tolist(), x, strict=True):
            sums[t] = sums[t] + row if t in sums else row
        return torch.stack(list(sums.values())).sum(0) if sums else torch.zeros(3)

    inputs = [(ids, torch.randn(len(ids), 3)) for (ids,) in IDS]
    assert_kept_alive(model, inputs[0], inputs, dynamic_shapes=FREE * 2)


def test_one_that_may_be_new_among_plain_ones():
    def model(n, x):
        held = {0: x, 1: x * 2}
        if x.sum() > 1:
            held[int(n)] = x * 7
        return sum(held.values()) * len(held)

    inputs = [(torch.tensor(n), torch.ones(3) * sign) for n in (0, 1, 5) for sign in (1, -1)]
    assert_kept_alive(model, inputs[0], inputs)


def test_a_memory_of_earlier_rounds():
    def model(n):
        known, i = {0: 0, 1: 1}, 2
        while i <= int(n):
            known[i] = known[i - 1] + known[i - 2]
            i += 1
        return torch.tensor(known[int(n)])

    assert_kept_alive(model, (torch.tensor(5),), numbers(0, 1, 9))


def test_a_text_that_may_be_new():
    def model(x):
        held = {"a": x}
        key = "a" if x.sum() > 0 else "b"
        held[key] = x * 5
        return sum(held.values()) * len(held)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def plain_keys_of_a_counter(x):
    counts = Counter(up=1)
    if x.sum() > 0:
        counts["up"] += 2
    else:
        counts["down"] += 1
    counts.update({"up": 1})
    return x * counts["up"] + counts["down"] + counts["none"] + len(counts)


def plain_keys_of_a_defaultdict(x):
    held = defaultdict(float)
    if x.sum() > 0:
        held["up"] += 2
    held["down"] -= 1
    return x * held["up"] + held["down"] + len(held)


@pytest.mark.parametrize("model", [plain_keys_of_a_counter, plain_keys_of_a_defaultdict])
def test_keys_that_an_arm_makes(model):
    assert_kept_alive(model, (UP,), [(DOWN,)])


HELD = {0: 1.0}


def test_a_dict_that_was_there_before_the_model_ran():
    """Its keys were taken to stay as they are, and only a note said so."""

    def model(x):
        HELD[int(x.sum())] = 2.0  # <- here
        return x * len(HELD)

    found = refused(model, (UP,))
    assert found.code == "TP104"
    assert found.where.line == model.__code__.co_firstlineno + 1
    assert "may be a new one" in found.message
