"""The names of a block, read and set through their cells: in classes, in functions inside functions, of modules."""

from __future__ import annotations

import torch

from tests.control_flow.kept_alive import DOWN, UP, assert_kept_alive
from trueport.rewrite.running.asking import UNBOUND
from trueport.rewrite.running.shared_names import shared_names

_calls = 0


def test_names_are_read_and_set():
    a, b = 1, 2
    state = shared_names(lambda: (b, a), ("a", "b"))
    assert state.get() == (1, 2)
    state.put((3, 4))
    assert (a, b) == (3, 4)
    assert state.names == ("a", "b")


def test_a_name_that_is_not_bound_yet():
    state = shared_names(lambda: (later,), ("later",))
    assert state.get() == (UNBOUND,)
    state.put((1,))
    later = later + 1  # noqa: F821
    assert state.get() == (2,)


def test_a_name_of_the_module():
    state = shared_names(lambda: (_calls,), ("_calls",))
    before = state.get()
    try:
        state.put((7,))
        assert _calls == 7
    finally:
        state.put(before)


def test_a_look_at_names_of_functions_around():
    a, seen = 1, [2]
    state = shared_names(lambda: (a,), ("a",), lambda: (seen,))
    assert state.look() == (seen,)
    seen = [3]
    assert state.look()[0] is seen


class Private(torch.nn.Module):
    """Python calls `__scale` in a class by another name; `scale` that ends alike is another one."""

    def forward(self, x):
        __scale, scale = 1.0, 10.0
        if x.sum() > 0:
            __scale = 3.0
        return x * __scale + scale


def test_private_names_of_a_class():
    assert_kept_alive(Private(), (UP,), [(DOWN,)], ifs=1)


def test_names_of_a_function_inside_a_function():
    def model(x):
        total = torch.zeros(())
        count = 0

        def add(row):
            nonlocal total, count
            if row.sum() > 0:
                total = total + row.sum()
                count += 1

        for i in range(4):
            add(x[i])
        return total, count

    mixed = torch.tensor([[1.0, 1, 1], [-1, -1, -1], [2, 2, 2], [-3, 0, 0]])
    assert_kept_alive(model, (UP,), [(DOWN,), (mixed,)], ifs=4)
