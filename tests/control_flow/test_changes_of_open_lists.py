"""What Python does to a list whose length a loop has left open: each change as eager makes it, at any place of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.control_flow.kept_alive import assert_kept_alive, refused, rows

FOUR = rows(4)[0]


def filled(x):
    out = []
    for row in x:
        out.append(row * 2)
    return out


def counted(x):
    out = []
    for row in x:
        out.append(int((row > 0).sum()))
    return out


def insert_at_two(x):
    out = filled(x)
    out.insert(1, x.sum(0))
    return out


def insert_before_the_last(x):
    out = filled(x)
    out.insert(-1, x.sum(0))
    return out


def insert_in_the_middle(x):
    out = filled(x)
    out.insert(len(out) // 2, x.sum(0))
    return out


def insert_in_rounds(x):
    out = [x.sum(0), x.sum(0) + 1]
    for row in x:
        out.insert(1, row)
    return out


def insert_what_is_smaller(x):
    out = []
    for row in x:
        value, at = row.sum().item(), 0
        while at < len(out) and out[at] < value:
            at += 1
        out.insert(at, value)
    return out


def insert_in_an_arm(x):
    out = filled(x)
    if x.sum() > 0:
        out.insert(1, x.sum(0))
    return out


def another_size_in_the_middle(x):
    out = [x[: i + 1] for i in range(x.shape[0])]
    out[len(out) // 2] = x.repeat(2, 1)
    return out


def pop_the_second(x):
    out = filled(x)
    return out.pop(1), out


def pop_in_the_middle(x):
    out = filled(x)
    return out.pop(len(out) // 2), out


def pop_from_a_plain_list(x):
    out = [x.sum(0), x.sum(0) + 1, x.sum(0) + 2]
    return out.pop(x.shape[0] % 3), out


def delete_the_last(x):
    out = filled(x)
    del out[-1]
    return out


def delete_the_second(x):
    out = filled(x)
    del out[1]
    return out


def delete_a_slice(x):
    out = filled(x)
    del out[1:3]
    return out


def delete_a_slice_that_ends_before_it_begins(x):
    out = filled(x)
    del out[3:1]
    return out


def delete_in_rounds(x):
    out = filled(x)
    while len(out) > 2:
        del out[0]
    return out


def replace_a_slice(x):
    out = filled(x)
    out[1:2] = [x.sum(0), x.sum(0) * 2]
    return out


def replace_the_end_by_an_open_list(x):
    out = filled(x)
    out[-1:] = [row for row in x if row.sum() > 0]
    return out


def replace_all(x):
    out = filled(x)
    out[:] = [row + 1 for row in out]
    return out


def repeat(x):
    out = filled(x) * 2
    out *= 2
    return out


def go_backwards(x):
    return list(reversed(filled(x)))


def number_of_the_first(x):
    return counted(x).index(2)


def how_often(x):
    return counted(x).count(1), counted(x).count(7)


def without_the_first(x):
    out = counted(x)
    out.remove(2)
    return out


def equal_to_a_plain_list(x):
    return counted(x) == [0, 2], counted(x) != counted(-x), counted(x) == []


def decided_by_equality(x):
    if counted(x) == counted(x.abs()):
        return x
    return x + 1


def in_a_tuple(x):
    return (*filled(x), x.sum(0))


def is_a_tuple(x):
    return x + 1 if isinstance(x.split(2), tuple) else x


def is_no_list(x):
    return x + 1 if isinstance(x.unbind(0), list) else x


def a_tuple_and_one_more(x):
    return x.split(2) + (x,), (x,) + x.split(2)  # noqa: RUF005  it is the sum that is tested


def taken_apart_by_zip(x):
    rows, sums, both = zip(*[(row, row.sum().item(), (row, row * 2)) for row in x])
    return torch.stack(rows), sums, both


def the_first_of_all(x):
    pairs = []
    for row in x:
        pairs.append((row, row.sum()))
    first, _ = zip(*pairs)
    return first


def the_largest_of_all(x):
    return max(*[row.sum().item() for row in x])


def a_tuple_that_grows(x):
    out = ()
    for row in x:
        out = (*out, row)
    return out


def a_tuple_that_is_added_to(x):
    out = (x.sum(0),)
    for row in x:
        out += (row * 2,)
    return out, len(out), torch.stack(out)


def a_tuple_of_the_last_two(x):
    out = (x.sum(0), x.sum(0))
    for row in x:
        out = (out[1], row)
    return out


def beams(x):
    kept = [(torch.zeros(3), 0.0)]
    for row in x:
        found = []
        for state, score in kept:
            found.append((state + row, score + row.sum().item()))
            found.append((state - row, score - row.sum().item()))
        found.sort(key=lambda each: each[1], reverse=True)
        kept = found[:2]
    return [state for state, _ in kept]


def left_in_a_loop(x):
    out = []
    for row in x:
        if row.sum() > 1:
            return out
        out.append(row)
    return out


def left_in_the_inner_loop(x):
    out = []
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if x[i, 0] + x[j, 0] > 2:
                return out, i
            out.append(x[i] + x[j])
    return out, -1


def left_by_return_only(x):
    out, state = [], x.sum(0)
    while True:
        state = state * 0.5 + 1
        if len(out) > 3:
            return out, state
        out.append(state)
        if state.sum() > 4:
            return out, state


def in_both_arms(x):
    if x.sum() > 0:
        return filled(x), x
    return [row for row in x if row.sum() > 0], x + 1


def by_a_traced_key(x):
    groups = [[], [], []]
    for row in x:
        groups[int(row.argmax())].append(row)
    return groups[0], groups[1], groups[2]


def by_a_decision(x):
    groups = {True: [], False: [x.sum(0)]}
    for row in x:
        groups[bool(row.sum() > 0)] += [row, row * 2]
    return groups[True], groups[False]


def in_turns(x):
    groups = [[] for _ in range(3)]
    for i, row in enumerate(x):
        groups[i % 3].insert(0, row)
    return tuple(groups)


def longer_by_rows(x):
    out = [x.sum(0)]
    out.extend(x)
    for i in range(x.shape[0]):
        out += x[:i]
    return out


def longer_by_what_is_gone_through(x):
    pairs, numbers = [], [7]
    pairs.extend(zip(x, x * 2))
    numbers.extend(range(x.shape[0]))
    return pairs, numbers


def repeated_as_often_as_there_are_rows(x):
    lengths, numbers = [3] * x.shape[0], [1, 2] * x.shape[0]
    return x.flatten().split(lengths), numbers


def pairs_in_order(x):
    pairs = [(int((row > 0).sum()), -i) for i, row in enumerate(x)]
    ascending = sorted(pairs)
    pairs.sort(reverse=True)
    return ascending, pairs


def rows_in_the_order_of_their_scores(x):
    scored = [(row.sum().item(), row) for row in x]
    scored.sort()
    return [row for _, row in scored]


def the_best_of_pairs(x):
    return max([(int((row > 0).sum()), i) for i, row in enumerate(x)])[1]


def left_inside_a_with(x):
    out = []
    with torch.no_grad():
        for row in x:
            if row.sum() > 1:
                return out, x
            out.append(row)
        out.append(x.sum(0))
    return out, x + 1


CHANGES = [each for name, each in list(globals().items()) if getattr(each, "__module__", "") == __name__]


@pytest.mark.parametrize("function", CHANGES, ids=lambda function: function.__name__)
def test_as_eager_does(function: Callable[..., Any]) -> None:
    given = [each for each in [*rows(0, 1, 2, 3, 7), (torch.tensor([[1.0, 2, -1]]),)] if accepts(function, each)]
    assert len(given) > 2
    fewest = min(len(each[0]) for each in given)
    assert_kept_alive(function, FOUR, given, dynamic_shapes=({0: torch.export.Dim("n", min=fewest)},))


def accepts(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether eager does: an item that is not there cannot be taken out."""
    try:
        function(*args)
    except (IndexError, ValueError, TypeError):
        return False
    return True


def test_an_item_that_is_not_there_is_caught() -> None:
    def caught(x):
        out = counted(x)
        try:
            return torch.tensor(out.index(3))
        except ValueError:
            return torch.tensor(-1)

    assert_kept_alive(caught, FOUR, [(torch.ones(2, 3),), (-torch.ones(2, 3),)], dynamic_shapes=({0: "n"},))


def test_a_shared_item_that_is_written_later_is_refused_at_the_list() -> None:
    """Each item is the same tensor, which eager shows as it is at the end."""

    def shared(x):
        out, total = [], torch.zeros(3)
        for row in x:
            total += row
            out.append(total)
        return out

    found = refused(shared, FOUR, dynamic_shapes=({0: "n"},))
    assert found.code == "TP103"
    assert found.where.line == shared.__code__.co_firstlineno + 2


def test_a_list_of_one_is_not_taken_for_the_tensor_in_it() -> None:
    def last_row(x):
        last = None
        for row in x:
            last = [row]
        return x.sum(0) if last is None else last[0] + 1

    found = refused(last_row, FOUR, dynamic_shapes=({0: "n"},))
    assert (found.code, found.where.line) == ("TP103", last_row.__code__.co_firstlineno + 2)


def test_every_second_item_is_refused_at_its_line() -> None:
    def deletes(x):
        out = filled(x)
        del out[::2]
        return out

    found = refused(deletes, FOUR, dynamic_shapes=({0: "n"},))
    assert (found.code, found.where.line) == ("TP104", deletes.__code__.co_firstlineno + 2)
    assert "every so many items" in found.message


def test_a_tensor_in_a_list_that_is_turned_round_is_written_in_place() -> None:
    """Found by fuzzing, seed 2711, 775: turned round, the list forgot whose items it holds."""

    def model(x, y):
        g, out = -y, []
        for _, _row in zip(range(3), x, strict=False):
            out.append(g)
            out.reverse()
        if out:
            out[0] += 1
        return g

    assert refused(model, (torch.ones(2, 3), torch.ones(3)), dynamic_shapes=({0: "n"}, None)).code == "TP103"
