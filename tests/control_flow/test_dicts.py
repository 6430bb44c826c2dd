"""Dicts whose keys depend on the way that the model took: of one arm, of later rounds only, or in another order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive, refused

ROUNDS = [(torch.ones(3) * sign, torch.tensor(n)) for n in (0, 1, 2, 5) for sign in (1, -1)]


def added(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    return d


def removed(x):
    d = {"a": x, "b": x * 2, "c": x - 1}
    if x.sum() > 0:
        del d["b"]
    return d


def several(x):
    if x.sum() > 0:
        d = {"a": x, "b": x * 2}
    else:
        d = {"b": -x, "c": x + 1}
    return d


@pytest.mark.parametrize("make", [added, removed, several])
@pytest.mark.parametrize(
    "use",
    [
        lambda d, x: sum(d.values()),
        lambda d, x: x * len(d),
        lambda d, x: d["a"] if "a" in d else x - 1,
        lambda d, x: d.get("a", x - 1) + d.get("b", x - 2),
        lambda d, x: torch.cat(list(d.values())),
        lambda d, x: d.pop("a", x * 7) + d.setdefault("c", x * 3) + sum(d.values()),
        lambda d, x: sum(v * (2 if k == "a" else 3) for k, v in d.items()),
        lambda d, x: sum({**d, "b": x * 9}.values()),
        lambda d, x: sum(dict(d, q=x).values()) * len(d.copy()),
    ],
    ids="values length in get list pop-setdefault items unpacked copied".split(),
)
def test_uses_of_a_key_that_may_be_nan(make, use):
    def model(x):
        return use(make(x), x)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def into_another(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    e = {"q": x}
    e.update(d)
    return sum(e.values()) * len(e)


def over_a_key_that_is_there(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    e = {"a": x * 5, "z": x - 1}
    e.update(d)
    return e["a"] + e["z"] * len(e)


def either(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    e, f = {"q": x} | d, d | {"q": x, "z": x * 4}
    return e.get("a", x - 3) * len(e) + f.get("a", x) * len(f)


def taken_in(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    e = {"q": x}
    e |= d
    return sum(e.values())


def emptied(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    count = len(d)
    d.clear()
    d["b"] = x
    return sum(d.values()) * count * len(d)


def asked_for_its_truth(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    del d["z"]
    return (x * 2 if d else x - 1) + bool(d)


def compared(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    return x if d == {"z": x} else x * 2


def backwards(x):
    d = {"z": x}
    if x.sum() > 0:
        d["a"] = x * 2
    y = x * 0
    for key in reversed(d):
        y = y * 2 + d[key]
    return y


@pytest.mark.parametrize(
    "model",
    [
        *(into_another, over_a_key_that_is_there, either, taken_in),
        *(emptied, asked_for_its_truth, compared, backwards),
    ],
)
def test_uses_in_the_function_that_has_the_branch(model):
    """Above, `use` is called with what `make` returns, and that call is traced for each way."""
    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_list_of_its_keys():
    """Texts have no open number: what follows is traced in both arms."""

    def model(x):
        d = {"b": x, "a": x * 2}
        if x.sum() > 0:
            d["c"] = x - 1
        names = sorted(d)
        return torch.stack([d[name] * i for i, name in enumerate(names)]).sum(0) * len(names)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_keyword_arguments():
    def scaled(base, by=None):
        return base if by is None else base + by

    def model(x):
        given = {"base": x}
        if x.sum() > 0:
            given["by"] = x * 3
        return scaled(**given)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_cache_that_the_first_round_fills():
    def model(x, n):
        cache = {}
        for i in range(n):
            cache["k"] = torch.cat([cache["k"], x[None] * i]) if "k" in cache else x[None]
        return cache["k"] if "k" in cache else x[None] * 0

    assert_kept_alive(model, ROUNDS[-1], ROUNDS, loops=1)


def test_counts_by_a_text_that_each_round_chooses():
    def model(x, n):
        seen = {}
        for i in range(n):
            key = "up" if x[i % 3] * (i - 1) > 0 else "down"
            seen[key] = seen.get(key, 0) + 1
        return x * seen.get("up", 0) - seen.get("down", 7), len(seen)

    assert_kept_alive(model, ROUNDS[-1], ROUNDS)


def test_keys_that_each_round_puts_in_another_order():
    def model(x, n):
        d = {"a": x, "b": x * 2}
        for _ in range(n):
            value = d.pop("a")
            d["a"] = value + 1
        return torch.cat([*d.values()])

    assert_kept_alive(model, ROUNDS[-1], ROUNDS, loops=1)


def test_keys_that_one_arm_puts_in_another_order():
    def model(x):
        d = {"a": x, "b": x * 2}
        if x.sum() > 0:
            d["a"] = d.pop("a")
        return torch.cat(list(d.values()))

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_an_attribute_that_one_arm_sets():
    class Note:
        pass

    def model(x):
        note = Note()
        if x.sum() > 0:
            note.extra = x * 3
        return note.extra if hasattr(note, "extra") else x - 1

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_dict_that_is_returned_with_such_a_key_is_refused():
    def model(x):
        out = {"y": x}
        if x.sum() > 0:
            out["aux"] = x * 2
        return out

    assert refused(model, (UP,)).code == "TP103"


def test_a_key_error_that_is_caught():
    def model(x):
        d = {"y": x}
        if x.sum() > 0:
            d["aux"] = x * 2
        try:
            return d["aux"]
        except KeyError:
            return x - 9

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_layer_that_is_looked_up_and_fills_a_list():
    """What the arms of a lookup do to lists around them is seen."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = [1.0, 2.0, 3.0]

        def forward(self, t, x):
            noted = []
            steps = [lambda v, s=s: noted.append(v * s) for s in self.scales]
            steps[int(t)](x)
            noted.append(x)
            return torch.stack(noted)

    assert_kept_alive(Net(), (torch.tensor(1), UP), [(torch.tensor(k), UP) for k in range(3)])


def test_a_round_asks_whether_an_earlier_one_set_the_key():
    def model(x, n):
        best = {}
        for i in range(n):
            row = x * (i - 2)
            if "row" not in best:
                best["row"] = row
            else:
                best["row"] = torch.maximum(best["row"], row)
        return best["row"] if "row" in best else x - 7

    assert_kept_alive(model, ROUNDS[2], [ROUNDS[0], *ROUNDS[3:]])


def test_a_list_that_some_round_would_make_is_refused_with_a_way_out():
    def model(x, n):
        rows = {}
        for i in range(n):
            rows.setdefault("a", []).append(x * i)
        return torch.stack(rows["a"])

    assert "make the list before the branch or the loop" in refused(model, ROUNDS[2]).fix
