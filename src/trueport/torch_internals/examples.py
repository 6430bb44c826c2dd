"""Sizes and numbers with which a test would hold.

Where torch cannot tell about a free size, it looks at the size of the example. In an arm that the example does not take
that is the wrong one: `if n >= 5: x[4]` would be refused, since the example has three rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import sympy

from trueport.torch_internals.expressions import truth_at

_USUAL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 64, 128, 1000)
_MOST_SYMBOLS = 2

Values = Mapping[sympy.Symbol, Any]


def example_where(fact: sympy.Basic, example: Values, ranges: Values) -> Values | None:
    """Values near the example's for which a fact holds; None where the example does, or none were found."""
    symbols = sorted(fact.free_symbols, key=str)
    if len(symbols) > _MOST_SYMBOLS or any(s not in example or not example[s].is_Integer for s in symbols):
        return None
    if truth_at(fact, example) is not False:
        return None
    near = {int(n) + d for n in fact.atoms(sympy.Integer) for d in (-1, 0, 1)}
    tried = [
        sorted(
            (n for n in {*_USUAL, *near, -1, -2} if ranges[s].lower <= n <= ranges[s].upper),
            key=lambda n, at=int(example[s]): (n < 2, abs(n - at)),  # type: ignore[misc]
        )
        for s in symbols
    ]
    for numbers in itertools.product(*tried):
        values = dict(zip(symbols, map(sympy.Integer, numbers), strict=True))
        if truth_at(fact, values):
            return values
    return None
