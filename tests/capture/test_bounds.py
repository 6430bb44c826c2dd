"""What comparisons with plain numbers settle about others."""

from __future__ import annotations

import pytest
import sympy

from trueport.torch_internals.bounds import narrowed, settled

n, m = sympy.Symbol("n", integer=True), sympy.Symbol("m", integer=True)


@pytest.mark.parametrize(
    ("known", "asked", "answer"),
    [
        (n <= 2, n >= 3, False),
        (n <= 2, n < 3, True),
        (n <= 2, n >= 2, None),
        (2 * n > 7, n >= 4, True),
        (2 * n > 7, 3 * n < 12, False),
        (sympy.And(n >= 1, n <= 4), sympy.Or(n > 4, n < 1), False),
        (n > 5, sympy.Not(n > 5, evaluate=False), False),
        (n > 5, sympy.And(n > 3, m > 0), None),
        (n > 5, m > 5, None),
        (m > 0, sympy.And(n <= 2, n >= 3, evaluate=False), False),
        (m > 0, sympy.Or(n > 2, n < 3, evaluate=False), True),
        (n > 5, n * n > 25, None),
        (n + m > 5, n > 5, None),
    ],
)
def test_what_is_settled(known, asked, answer):
    assert settled(narrowed({}, known), asked) is answer


def test_facts_add_up():
    bounds = narrowed(narrowed({}, n >= 2), n < 4)
    assert settled(bounds, n > 1) is True
    assert settled(bounds, n >= 4) is False
    assert settled(bounds, n >= 3) is None
