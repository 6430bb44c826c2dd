"""Programs that the fuzzer found to be wrong, or refused without need, reduced; each with what was the matter."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.fuzz.outcome import Verdict, judge_model


class Program(nn.Module):
    """A forward like those of programs.py: x [free, 3], y [3], c (an int tensor), n (an int), q (a float)."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.last: Any = None

    def forward(self, x: Any, y: Any, c: Any, n: Any, q: Any) -> Any:
        self.last = y
        return self.function(self, x, y, c, n)


def assert_faithful(function: Any) -> None:
    outcome = judge_model(Program(function).eval())
    assert outcome.verdict is Verdict.FAITHFUL, outcome.detail


def assert_never_wrong(function: Any) -> None:
    """No graph of values says which of several tensors or containers a name is: refused, where it was WRONG."""
    outcome = judge_model(Program(function).eval())
    assert (outcome.verdict, outcome.code) == (Verdict.DIAGNOSED, "TP103"), outcome.detail


def weighed(items):
    return sum(item.sum() * (i + 1) for i, item in enumerate(items))


# --- exits


def test_a_loop_with_a_break_in_the_else_of_a_loop_without_one():
    """The `else` of a loop that never breaks was not looked at: 'break' outside loop."""

    def forward(self, x, y, c, n):
        k = 0
        while k < n:
            k += 1
        else:
            while x.shape[0] > k:
                k += 2
                break
        return y * k

    assert_faithful(forward)


def test_a_return_in_a_loop_in_the_else_of_a_loop():
    """It was taken for the end of the inner loop alone."""

    def forward(self, x, y, c, n):
        for row in x:
            y = y + row
        else:
            for row in reversed(x):
                if row.sum() > 0:
                    return y, row
        return y, -y

    assert_faithful(forward)


def test_a_break_in_the_else_of_a_loop_leaves_the_loop_around_it():
    def forward(self, x, y, c, n):
        found = 0
        for row in x:
            for k in range(2):
                if row.sum() > k:
                    break
            else:
                found = found + 1
                break
            y = y + row
        return y, found

    assert_faithful(forward)


def test_a_continue_in_the_else_of_a_loop_goes_on_with_the_loop_around_it():
    def forward(self, x, y, c, n):
        for row in x:
            k = 0
            while k < c:
                k += 1
                if row[0] > k:
                    break
            else:
                continue
            y = y + row
        return y

    assert_faithful(forward)


# --- one tensor, several names


def test_an_attribute_is_written_in_place_in_one_arm_and_set_in_the_other():
    """Where it was written, it had its old value after the branch: WRONG."""

    def forward(self, x, y, c, n):
        other = y * 2
        if y[0] > 0:
            self.last += 1
        else:
            self.last = other
        return self.last

    assert_faithful(forward)


def test_an_item_of_a_dict_is_written_in_place_in_one_arm_and_set_in_the_other():
    def forward(self, x, y, c, n):
        held = {"a": y * 1, "b": y * 2}
        if y[0] > 0:
            held["a"] = x.sum(0)
        else:
            held["a"].add_(1)
            held["b"] = held["a"]
        return held["a"], held["b"]

    assert_faithful(forward)


def test_a_weight_is_written_in_place_in_one_arm_and_another_is_chosen_in_the_other():
    """A tensor of the model's own has its last value in the arm too."""
    first, second = torch.zeros(3), torch.ones(3)

    def forward(self, x, y, c, n):
        self.held = first * 1
        chosen = self.held
        if y[0] > 0:
            self.held.add_(y)
        else:
            self.held = second
        return self.held, chosen

    assert_faithful(forward)


def test_a_name_is_written_in_place_in_one_arm_of_a_round_and_set_in_the_other():
    """An earlier attempt at tracing the round made the name out of date for the next: refused without need."""

    def forward(self, x, y, c, n):
        state = y * 1
        total = y.sum() * 0
        for row in x:
            total = total + state.sum()
            if row.sum() > 0:
                state = row * 1
            else:
                state[0] = total.clamp(-9, 9)
        return total, state

    assert_faithful(forward)


def test_a_name_follows_a_tensor_that_rounds_write():
    def forward(self, x, y, c, n):
        written = y * 1
        follows = written
        total = y.sum() * 0
        for row in x:
            total = total + follows.sum()
            written.add_(row.sign())
            follows = written * 1
        return written, follows, total

    assert_faithful(forward)


def test_the_first_tensor_of_a_loop_is_read_after_a_round_wrote_it_under_another_name():
    """In the second round, `first` holds what the first round wrote: refused, and never wrong."""

    def forward(self, x, y, c, n):
        first = y * 1
        state = first
        total = y.sum() * 0
        for row in x:
            total = total + first.sum()
            state.add_(1)
            state = row * 1
        return total, state

    outcome = judge_model(Program(forward).eval())
    assert (outcome.verdict, outcome.code) == (Verdict.DIAGNOSED, "TP103")


# --- containers


def test_one_arm_fills_a_list_and_the_other_makes_a_new_one():
    """The first arm's name held the list as it was before: WRONG."""

    def forward(self, x, y, c, n):
        out = []
        if y.sum() > 0:
            out.append(y)
        else:
            out = [y * 2]
        return weighed(out)

    assert_faithful(forward)


def test_one_arm_sets_a_key_of_a_dict_and_the_other_makes_a_new_one():
    def forward(self, x, y, c, n):
        held = {"a": y, "b": (y, [y])}
        if y.sum() > 0:
            held["a"] = y + 1
            held["b"][1][0] = y - 1
        else:
            held = {"a": y * 2, "b": (y, [y * 3])}
        return held["a"], held["b"][1][0]

    assert_faithful(forward)


def test_one_arm_fills_the_list_of_an_attribute_and_the_other_sets_the_attribute():
    def forward(self, x, y, c, n):
        self.items = [y]
        if y.sum() > 0:
            self.items.append(y * 2)
        elif y[0] > -1:
            self.items = [y * 3]
        return weighed(self.items)

    assert_faithful(forward)


# --- lists of tensors that are written afterwards


def test_a_tensor_of_a_list_is_written_in_the_arm_that_leaves_the_list_alone():
    """The other arm makes the list longer, and the item had its old value: WRONG."""

    def forward(self, x, y, c, n):
        h = y * 1
        out = [h]
        if y.sum() > 0:
            h.add_(1)
        else:
            out.append(h * 2)
        return weighed(out), h

    assert_faithful(forward)


def test_a_tensor_that_rounds_append_is_written_after_the_loop():
    def forward(self, x, y, c, n):
        h = y * 1
        out = []
        for row in x:
            out.append(h)
            if row.sum() > 0:
                out.append(row)
        h.add_(1)
        return weighed(out), h

    assert_never_wrong(forward)


def test_a_tensor_that_some_rounds_append_is_written_after_the_loop():
    def forward(self, x, y, c, n):
        h = y * 1
        out = []
        k = 0
        while True:
            k += 1
            if k >= x.shape[0]:
                break
            out.append(h)
        h.add_(1)
        return weighed(out), h

    assert_never_wrong(forward)


def test_a_tensor_that_rounds_append_is_written_by_every_round():
    def forward(self, x, y, c, n):
        h = y * 1
        out = []
        for row in x:
            out.append(h)
            h.add_(row.sign())
        return weighed(out), h

    assert_never_wrong(forward)


def test_the_tensor_that_a_round_appends_is_written_by_the_next():
    def forward(self, x, y, c, n):
        h = y * 1
        out = []
        for _ in x:
            h.add_(1)
            h = h * 1
            out.append(h)
        return weighed(out)

    assert_never_wrong(forward)


def test_a_round_writes_what_it_appends_and_no_other_round_does():
    def forward(self, x, y, c, n):
        z, h = x * 1, y * 1
        out = []
        for i in range(x.shape[0]):
            z[i] = x[i] * 2
            h = h * 1
            h.add_(1)
            out.append(z[i])
            out.append(h)
        return weighed(out), z

    assert_faithful(forward)


def test_what_a_list_is_stacked_into_is_a_tensor_of_its_own():
    """The list held the same memory, and saw what was written to the stack."""

    def forward(self, x, y, c, n):
        out = [y * 1]
        for row in x:
            out.append(row * 1)
        stacked = torch.stack(out)
        stacked.add_(1)
        return weighed(out), stacked

    assert_faithful(forward)
