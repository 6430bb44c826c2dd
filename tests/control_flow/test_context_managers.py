"""`with`: managers that decide by traced values, written as a generator or as a class."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, refused, rows


@contextmanager
def before_the_yield(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    yield y


@contextlib.contextmanager
def one_yield_in_each_arm(x):
    if x.sum() > 0:
        yield x * 2
    else:
        yield x - 5


@contextmanager
def put_back_afterwards(settings, x):
    before = settings["scale"]
    if x.sum() > 0:
        settings["scale"] = before * 2
    try:
        yield settings
    finally:
        settings["scale"] = before


@contextmanager
def catching(x):
    if x[1] > 0:
        x = x * 2
    try:
        yield x
    except ValueError:
        pass


class Scale:
    def __init__(self, x):
        self.x, self.factor = x, 1.0

    def __enter__(self):
        if self.x.sum() > 0:
            self.factor = 2.0
        return self

    def __exit__(self, *error):
        self.factor = 0.0
        return False


def test_a_generator_that_decides_before_it_yields():
    def model(x):
        with before_the_yield(x) as y:
            z = y + 1
        return z

    assert_kept_alive(model, (UP,), [(DOWN,)], ifs=1)


def test_a_block_that_stands_in_both_arms_of_the_generator_and_returns():
    def model(x):
        with one_yield_in_each_arm(x) as y, Scale(x) as scale:
            z = y * scale.factor
            if z[0, 0] > 1:
                return z + 1
        return z - 1

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_what_the_generator_does_behind_its_yield():
    def model(x):
        settings = {"scale": 3.0}
        with put_back_afterwards(settings, x) as now:
            y = x * now["scale"]
        return y + settings["scale"]

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_an_error_of_the_block_is_raised_where_the_generator_yields():
    def model(x):
        y = x
        with catching(x) as z:
            y = z
            if x[0] > 0:
                raise ValueError
            y = y + 100
        return y

    signs = [(torch.tensor([a, b, 1.0]),) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    assert_kept_alive(model, signs[0], signs)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    @contextmanager
    def scaled(self, x):
        before = self.scale
        self.scale = 2.0 if x.mean() > 0 else 0.5
        try:
            yield
        finally:
            self.scale = before

    def forward(self, x):
        with self.scaled(x):
            y = x * self.scale
        return y + self.scale


def test_a_method_that_changes_an_attribute_for_a_while():
    assert_kept_alive(Scaled(), (UP,), [(DOWN,)])


def test_break_and_continue_in_the_block():
    def model(x):
        total = torch.zeros(3)
        for row in x:
            with before_the_yield(row) as y, Scale(row) as scale:
                if y[0] > 2:
                    break
                if y[1] > 1:
                    continue
                total = total + y * scale.factor
        return total

    assert_kept_alive(model, (torch.randn(4, 3),), rows(0, 1, 2, 7), dynamic_shapes=ROWS)


def test_a_class_whose_state_a_branch_reads():
    def model(x):
        with Scale(x) as scale:
            y = x * scale.factor
            if scale.factor > 1.5:
                y = y + 10
        return y + scale.factor

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_one_that_is_entered_by_hand_is_refused():
    def model(x):
        with ExitStack() as stack:
            return stack.enter_context(before_the_yield(x))

    found = refused(model, (UP,))
    assert found.code == "TP107"
    assert "ExitStack" in found.message
    assert "`with` of its own" in found.fix


def test_one_of_two_managers():
    """No value can be one or the other: the block is traced in both arms."""

    def model(x):
        manager = Scale(x) if x.sum() > 0 else contextlib.nullcontext()
        with manager:
            y = x * 2
        return y

    assert_kept_alive(model, (UP,), [(DOWN,)])
