"""Errors that a round of a loop raises, and the user's code catches outside of the loop."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, numbers, rows

MANY = rows(0, 1, 2, 7)


class Stop(Exception):
    pass


class Other(Exception):
    pass


class Found(Exception):
    def __init__(self, row):
        super().__init__("found")
        self.row = row


def ended(x):
    total, count = torch.zeros(3), 0
    try:
        for row in x:
            if row[0] > 0.5:
                raise ValueError("too large")
            total = total + row
            count += 1
    except ValueError:
        total = total * 2
    return total + count


def out_of_two_loops(x):
    total = torch.zeros(())
    try:
        for row in x:
            for value in row:
                if value > 1.0:
                    raise Stop
                total = total + value
    except Stop:
        pass
    return total


def with_what_it_holds(x):
    try:
        for row in x:
            if row[0] > 0.3:
                raise Found(row)
        return torch.zeros(3)
    except Found as found:
        return found.row * 2


def with_a_number(x):
    largest = torch.zeros(())
    try:
        for i, row in enumerate(x):
            if row.max() > 1.2:
                raise ValueError(i)
            largest = torch.maximum(largest, row.max())
    except ValueError as error:
        return largest + error.args[0] * 100
    return largest


def one_of_two(x):
    total = torch.zeros(3)
    try:
        for row in x:
            if row[0] > 0.8:
                raise Stop
            if row[1] > 0.8:
                raise Other
            total = total + row
    except Stop:
        total = total * 2
    except Other:
        total = total * 3
    return total


def _checked(row):
    if row.sum() < -1:
        raise RuntimeError("negative")
    return row * 2


def of_a_helper(x):
    total = torch.zeros(3)
    try:
        for row in x:
            total = total + _checked(row)
    except RuntimeError:
        total = total - 1
    finally:
        total = total + 0.5
    return total


def caught_and_raised_again(x):
    total = torch.zeros(3)
    try:
        try:
            for row in x:
                if row[0] > 0.5:
                    raise ValueError("a")
                total = total + row
        except ValueError as error:
            raise RuntimeError("b") from error
    except RuntimeError:
        total = total - 10
    return total


def beside_else_and_break(x):
    total = torch.zeros(3)
    try:
        for row in x:
            if row[0] > 0.5:
                raise Stop
            if row[1] > 1:
                break
            total = total + row
        else:
            total = total + 100
    except Stop:
        total = -total
    return total


def suppressed(x):
    total = torch.zeros(3)
    with suppress(AssertionError):
        for row in x:
            assert row[0] < 0.5
            total = total + row
    return total


def two_items_at_a_time(x):
    items, total = iter(x), torch.zeros(3)
    try:
        while True:
            first = next(items)
            total = total + first * next(items)
    except StopIteration:
        pass
    return total


def _place_of(x, least):
    for i, row in enumerate(x):
        if row[0] > least:
            return i
    raise LookupError


def raised_behind_the_loop(x):
    try:
        place = _place_of(x, 0.5)
    except LookupError:
        place = -1
    return torch.tensor(place)


@pytest.mark.parametrize(
    "model",
    [
        ended,
        out_of_two_loops,
        with_what_it_holds,
        with_a_number,
        one_of_two,
        of_a_helper,
        caught_and_raised_again,
        beside_else_and_break,
        suppressed,
        two_items_at_a_time,
        raised_behind_the_loop,
    ],
)
def test_an_error_that_leaves_a_loop(model):
    assert_kept_alive(model, (torch.randn(4, 3),), [*MANY, (-torch.ones(3, 3),)], dynamic_shapes=ROWS)


def test_an_error_of_pythons_own_that_ends_a_while():
    def model(n):
        left, total = int(n), 0
        try:
            while True:
                total += 100 // left
                left -= 1
        except ZeroDivisionError:
            pass
        return torch.tensor(total)

    assert_kept_alive(model, (torch.tensor(3),), numbers(0, 1, 8))


def test_a_loop_of_plain_length_with_more_rounds_than_a_statement_is_run_for():
    def model(x):
        total = torch.zeros(3)
        try:
            for i in range(10):
                if x[i, 0] > 0.5:
                    raise Stop
                total = total + x[i]
        except Stop:
            total = -total
        return total

    late = torch.zeros(10, 3)
    late[9] = 1
    assert_kept_alive(model, (torch.zeros(10, 3),), [(torch.ones(10, 3),), (late,)])


def test_both_arms_raise_and_another_except_catches_each():
    def model(x):
        try:
            if x[0] > 0:
                raise ValueError
            else:
                raise KeyError
        except ValueError:
            return x * 2
        except KeyError:
            return x * 3

    assert_kept_alive(model, (torch.ones(3),), [(-torch.ones(3),)])
