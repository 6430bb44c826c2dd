"""Ternaries, Python's builtins over tensors and traced numbers, `assert`, `raise`, `match`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest
import torch

from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, numbers, refused, rows

PAIRS = [(torch.tensor([3, 5]),), (torch.tensor([9, 2]),), (torch.tensor([4, 4]),), (torch.tensor([-7, 0]),)]


def split(inputs):
    return inputs[0], inputs[1:]


# --- ternaries


def test_ternary():
    def model(x):
        return x * 2 if x.sum() > 0 else x - 1

    assert_kept_alive(model, (UP,), [(DOWN,)], ifs=1)


def test_nested_ternaries():
    def model(t):
        return t * 2 if t > 5 else t - 1 if t > 0 else -t

    assert_kept_alive(model, *split(numbers(9.0, 3.0, -3.0)), ifs=2)


def test_ternary_as_an_argument():
    def model(x):
        return torch.clamp(x, min=0.0 if x.sum() > 0 else -0.5) + torch.add(x, 1 if x.sum() > 0 else 2)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_ternary_inside_a_comprehension_and_a_dict():
    def model(x):
        parts = [row * 2 if row.sum() > 0 else -row for row in (x[0], x[1], x[2])]
        named = {"first": parts[0] if x.sum() > 0 else parts[1]}
        return torch.stack(parts), named["first"]

    assert_kept_alive(model, (UP,), [(DOWN,), (torch.randn(4, 3),)], ifs=4)


def test_ternary_of_numbers_as_a_size():
    def model(x):
        n = 2 if x.sum() > 0 else 3
        return x[:n] * n, n

    assert_kept_alive(model, (UP,), [(DOWN,)], ifs=1)


# --- builtins


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: max(x[0], x[1]),
        lambda x: min(x[0], x[1], 4),
        lambda x: max(x),
        lambda x: max(int(x[0]), int(x[1])) + min(x[0].item(), 3),
        lambda x: any(v > 4 for v in x),
        lambda x: all(v > 2 for v in (x[0], x[1])),
        lambda x: any([x[0] > 8, x[1] > 4]),
        lambda x: sum([x[0], x[1]]) + sum(v * 2 for v in x),
        lambda x: sum(x.tolist()),
        lambda x: abs(x[0]) + abs(int(x[1]) - 4),
        lambda x: divmod(x[0].item() + 20, 3),
        lambda x: round(x[0].item() / 4, 0),
        lambda x: x * math.floor(x[0].item() / 2) + math.ceil(x[1].item() / 2),
        lambda x: math.sqrt(x[0].item() ** 2),
        lambda x: float(x[0]) * 1.5,
        lambda x: int(float(x[0]) / 2),
        lambda x: int(x[0] > x[1]) + 1,
        lambda x: bool(x[0] > x[1]),
        lambda x: max([x[0] * 2, x[1]], key=lambda v: v % 5),
        lambda x: 1 if x[0] > 4 and isinstance(x[1].item(), int) else 2,
        lambda x: 1 if isinstance(x[0].item(), int) and x[0] > 4 else 2,
        lambda x: x * 2 if isinstance(x[0].item(), int) else x,
        lambda x: x * 2 if isinstance(x[0].item(), (float, bool)) else x,
        lambda x: x * 2 if isinstance(x[0].item(), torch.SymInt) else x,  # eager has a plain number there
        lambda x: list(reversed([x[0], x[1]]))[0],
        lambda x: pow(x[0].item(), 2),
        lambda x: (x[0].item() > 4) + 2 * (x[1].item() > 4) - (x[0].item() == x[1].item()),
        lambda x: sum(v > 4 for v in x.tolist()) * 1.5,
        lambda x: ~x[0].item() + (x[0].item() ^ 3),
        lambda x: (x[0].item() > 4) ^ (x[1].item() > 4),
        lambda x: x / (1 + math.exp(-x[0].item() / 4)),
        lambda x: x * (math.log(abs(x[0].item()) + 1, 2) + math.hypot(x[0].item(), x[1]) + math.atan2(x[0], 2.0)),
        lambda x: x * (sqrt(abs(x[0].item())) + np.sqrt(abs(x[1].item())) + np.ceil(x[0].item() / 2)),
        lambda x: math.isclose(x[0].item(), 5.0) or math.isfinite(x[1]),
    ],
)
def test_builtin(compute):
    assert_kept_alive(lambda x: compute(x), *split(PAIRS))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: len(x) * 2,
        lambda x: x * len(x),
        lambda x: max(len(x), 3) + min(x.shape[0], 5),
        lambda x: sum(range(len(x))),
        lambda x: any(row.sum() > 1 for row in x),
        lambda x: all(row.sum() > -9 for row in x),
        lambda x: abs(len(x) - 4),
        lambda x: torch.stack([row * i for i, row in enumerate(x)]) if len(x) > 0 else x,
        lambda x: torch.stack([a + b for a, b in zip(x, x.flip(0))]) if len(x) > 0 else x,
        lambda x: sum([i * 2 for i in range(len(x))]),
        lambda x: x / math.sqrt(len(x) + 1),
        lambda x: x[: round(len(x) / 2)],
    ],
)
def test_builtin_over_a_free_size(compute):
    assert_kept_alive(lambda x: compute(x), *split(rows(4, 1, 7, 0)), dynamic_shapes=ROWS)


def test_max_of_the_rows_numbers():
    def model(x):
        return max(row.max() for row in x), min(row.min() for row in x), sum(row.sum() for row in x)

    assert_kept_alive(model, *split(rows(4, 1, 7)), dynamic_shapes=ROWS)


def test_sorted_by_a_network_of_branches():
    def model(x):
        a, b = sorted([x[0], x[1]])
        return a, b, sorted([x[0].item(), x[1].item(), 3], reverse=True)

    assert_kept_alive(model, *split(PAIRS))


def test_dict_and_set_comprehensions():
    def model(x):
        named = {name: x[i] if x[i] > 4 else x[i] * 2 for i, name in enumerate(("a", "b"))}
        kept = {k for k in named if k != "c"}
        return named, len(kept)

    assert_kept_alive(model, *split(PAIRS), ifs=2)


def test_comprehension_with_a_condition_on_plain_things():
    def model(x):
        return torch.stack([x[i] * 2 if x[i] > 4 else x[i] for i in range(2) if i != 1])

    assert_kept_alive(model, *split(PAIRS), ifs=1)


# --- assert, raise, match


def test_an_assertion_is_dropped_and_told():
    def model(x):
        assert x.max() < 1000, "too large"
        return x * 2

    program = assert_kept_alive(model, (UP,), [(DOWN,)], ifs=0)
    (told,) = [d for d in program.report.diagnostics if d.code == "TP105"]
    assert told.where.line == model.__code__.co_firstlineno + 1


def test_an_assertion_on_plain_values_still_raises():
    def model(x):
        assert x.dim() == 2
        return x * 2

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_data_dependent_raise_is_dropped_and_told():
    def model(x):
        if x.max() > 1000:
            raise ValueError("too large")
        return x * 2

    program = assert_kept_alive(model, (UP,), [(DOWN,)], ifs=0)
    (told,) = [d for d in program.report.diagnostics if d.code == "TP105"]
    assert told.where.line == model.__code__.co_firstlineno + 1
    assert "ValueError" in told.message


def test_a_raise_in_the_last_arm():
    def model(x):
        if x.sum() > 20:
            y = x * 2
        elif x.sum() > -20:
            y = x * 3
        else:
            raise ValueError("too small")
        return y

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,)], ifs=1)


def test_an_arm_that_reads_a_name_before_it_is_assigned_raises():
    """Eager raises UnboundLocalError if it comes there; until it does, nobody notices the slip."""

    def model(x):
        if x.max() > 1000:
            y = scale * x  # noqa: F821
            scale = 2  # noqa: F841
        else:
            y = x * 3
        return y

    program = assert_kept_alive(model, (UP,), [(DOWN,)], ifs=0)
    (told,) = [d for d in program.report.diagnostics if d.code == "TP105"]
    assert "UnboundLocalError" in told.message


def test_a_loop_that_reads_a_name_before_it_is_assigned_is_refused_at_the_line():
    def model(x, n):
        for _ in range(n):
            x = x + step  # noqa: F821
            step = x * 2  # noqa: F841
        return x

    found = refused(model, (torch.ones(3), 0))
    assert found.code == "TP105"
    assert found.where.line == model.__code__.co_firstlineno + 2


def test_a_raise_that_another_except_does_not_catch_is_dropped():
    def model(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
        except KeyError:
            x = x - 5
        return x * 2

    assert_kept_alive(model, (torch.ones(3),), [(torch.zeros(3),)])


def test_a_raise_in_a_loop():
    def model(x):
        total = x.new_zeros(())
        for row in x:
            if row.sum() > 1000:
                raise ValueError("too large")
            total = total + row.sum()
        return total

    assert_kept_alive(model, *split(rows(4, 1, 7, 0)), dynamic_shapes=ROWS, ifs=0, loops=1)


def test_match_on_a_tensors_value():
    def model(x):
        match x[0].item():
            case 3:
                y = x * 2
            case 9 | 4:
                y = x * 3
            case _:
                y = -x
        return y

    assert_kept_alive(model, *split(PAIRS))


def test_match_with_a_guard_and_returns():
    def model(x):
        match int(x[0]):
            case 3 if x[1] > 4:
                return x * 2
            case n if n > 4:
                return x * n
        return x

    assert_kept_alive(model, *split([*PAIRS, (torch.tensor([3, 1]),)]))


def test_match_on_a_pattern_that_takes_apart_plain_things():
    def model(x):
        match (x.dim(), "up"):
            case (1, direction):
                scale = 2 if x[0] > 4 else 3
            case _:
                direction, scale = "none", 1
        return x * scale, direction

    assert_kept_alive(model, *split(PAIRS), ifs=1)


@dataclass
class Point:
    a: torch.Tensor
    b: int


class Wrapped:
    __match_args__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


def test_match_of_every_kind_of_pattern_with_a_test_that_is_traced():
    def matched(thing, x, n):
        match thing:
            case Point(a, 2) if n > 1:
                return a * 2
            case Point(a=a, b=b):
                return a + b
            case Wrapped(inner) if n > 2:
                return inner
            case Wrapped():
                return x * 0
            case [first, *middle, last] if n > 0:
                return first + last + len(middle)
            case [_, *_]:
                return -x
            case {"k": k, **rest} if n > 4:
                return k + rest["z"]
            case {"k": k}:
                return k - 7
            case 0 | 1:
                return x * 11
            case int(v):
                return x * v
            case str(text) if n == 5:
                return x * len(text)
            case str() | float():
                return x * 3
            case 2 | _:
                return x

    def model(x, n):
        things = [Point(x, 2), Wrapped(x * 2), [x, x + 1, x + 2], {"k": x, "z": 3}, int(n), "text", 2.5, []]
        return torch.stack([matched(thing, x, n) for thing in things])

    x = torch.tensor([0.5, -1.0])
    assert_kept_alive(model, (x, torch.tensor(2)), [(x, torch.tensor(n)) for n in (0, 1, 3, 5)])


def test_match_that_takes_apart_traced_numbers():
    """A pattern like `(3, b)` compares item by item."""

    def model(x):
        match (x[0].item(), x[1].item()):
            case (3, b):
                return x * b
            case (a, 2):
                return x + a
            case _:
                return x

    assert_kept_alive(model, *split(PAIRS))


def test_many_items_are_sorted_by_one_operator():
    """Pairs of a score and the tokens that have it, as in a beam search; equal scores stay in their order."""

    def model(x):
        pairs = [(x[i, 0].round(), torch.tensor([i, i + 1])) for i in range(6)]
        pairs.sort(key=lambda pair: pair[0], reverse=True)
        first = sorted(pairs, key=lambda pair: pair[1][0])
        return torch.stack([tokens for _, tokens in pairs]), pairs[0][0], first[2][0]

    torch.manual_seed(0)
    assert_kept_alive(model, (torch.randn(6, 1) * 2,), [(torch.randn(6, 1),), (torch.zeros(6, 1),)], ifs=0)


def test_sorting_the_numbers_of_an_open_tensor():
    def model(x):
        ordered = sorted(x[:, 0])
        return ordered[0], torch.stack(sorted(x[:, 1], reverse=True))

    assert_kept_alive(model, *split(rows(4, 1, 7)), dynamic_shapes=ROWS)


def test_sorting_something_of_open_length_by_pairs():
    def model(x):
        return sorted(x.round(), key=lambda row: (row[0].item(), row[1].item()))[0]

    assert_kept_alive(model, *split(rows(4, 1, 9)), dynamic_shapes=ROWS)


def test_sorting_something_of_open_length_by_what_is_no_number_is_refused_at_its_line():
    def model(x):
        return sorted(x, key=lambda row: "many" if row.sum() > 0 else "few")[0]

    found = refused(model, rows(4)[0], dynamic_shapes=ROWS)
    assert found.code == "TP103"
    assert found.where.line == model.__code__.co_firstlineno + 1


# --- `or` and `and` as values


def test_a_number_or_a_default():
    """`n or 4` was taken for a truth: 1 where n holds."""

    def model(x, n: int, scale: float):
        rounds = n or 4
        factor = scale or 0.5
        return x * rounds * factor, rounds, n and 7

    assert_kept_alive(model, (UP, 3, 2.0), [(UP, 0, 0.0), (DOWN, 2, 0.0), (DOWN, 0, 3.0)])


def test_a_tensor_or_another():
    def model(x):
        return (x[0, 0] or x[0, 1] or x[0, 2]) + (x[1, 0] and x[1, 1])

    first = torch.tensor([[0.0, 2.0, 3.0], [1.0, 5.0, 6.0]])
    assert_kept_alive(model, (first,), [(-first.flip(1),), (first * 0,), (first.flip(0),)])


def test_a_size_or_a_default():
    def model(x):
        width = x.shape[0] or 2
        return torch.ones(width, 3), x.sum(0) / width

    example, *others = rows(4, 1, 0, 7)
    assert_kept_alive(model, example, others, dynamic_shapes=ROWS)


def test_or_in_a_test_is_one_test():
    """Nobody wants the operands themselves there: no `If` of its own, also below `not` and `bool`."""

    def model(x):
        flag = bool(x.sum() > 1 or x.mean() < -1)
        if not (x.sum() > 0 or x.max() > 3):
            return x * 2
        return x - 1 if flag else x

    assert_kept_alive(model, (UP,), [(DOWN,), (UP * 0,)])


def test_a_raise_that_is_caught_outside_a_comprehension_is_refused():
    """Eager goes on in the `except`; dropped, the model would go on as if nothing had been raised."""

    def checked(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return x

    def model(x):
        try:
            return torch.stack([checked(row) for row in x]).sum(0)
        except (KeyError, ValueError):
            return x[0] - 5

    found = refused(model, (torch.ones(3, 2),), dynamic_shapes=ROWS)
    assert found.code == "TP105"
    assert found.where.line == checked.__code__.co_firstlineno + 1
    assert found.also[0].where.line == model.__code__.co_firstlineno + 3
