"""What comparisons with plain numbers say of a size, and whether another comparison is settled thereby.

In the arm where `len(x) <= 2`, the test `len(x) >= 3` fails: its own arm cannot be traced, since no size goes there.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

Interval = tuple[sympy.Expr, sympy.Expr]
"""The smallest and the largest integer that a symbol can be."""
Bounds = Mapping[sympy.Symbol, Interval]

Equations = Mapping[sympy.Expr, sympy.Expr]

_ANYTHING: Interval = (-sympy.oo, sympy.oo)


def narrowed(bounds: Bounds, fact: sympy.Basic) -> Bounds:
    """The bounds where a fact holds, too."""
    found = dict(bounds)
    for part in sympy.And.make_args(fact):
        if (one := _one_symbol(part)) is not None:
            symbol, (low, high) = one
            before = found.get(symbol, _ANYTHING)
            found[symbol] = (sympy.Max(low, before[0]), sympy.Min(high, before[1]))
    return found


def opposite(fact: sympy.Basic) -> sympy.Basic:
    """Where it fails: `a or b` fails where both do."""
    return sympy.to_nnf(sympy.Not(fact), simplify=False)


def equal_where(fact: sympy.Basic) -> Equations:
    """What can be put in the place of what, where a fact holds."""
    return {part.lhs: part.rhs for part in sympy.And.make_args(fact) if isinstance(part, sympy.Eq)}


def settled(bounds: Bounds, test: sympy.Basic) -> bool | None:
    """Whether a test holds for all that the bounds leave (True), for none of it (False), or for some."""
    if isinstance(test, sympy.Not):
        inner = settled(bounds, test.args[0])
        return None if inner is None else not inner
    if isinstance(test, (sympy.And, sympy.Or)):
        deciding = isinstance(test, sympy.Or)  # one such part is enough
        answers = [settled(bounds, part) for part in test.args]
        if deciding in answers or None not in answers:
            return deciding if deciding in answers else not deciding
        parts = [sympy.Not(part) for part in test.args] if deciding else test.args
        together = narrowed(bounds, sympy.And(*parts))
        return deciding if any(bool(low > high) for low, high in together.values()) else None
    one = _one_symbol(test)
    if one is None or one[0] not in bounds:
        return None
    symbol, (low, high) = one
    smallest, largest = bounds[symbol]
    if low <= smallest and largest <= high:
        return True
    return False if bool(high < smallest) or bool(largest < low) else None


def _one_symbol(test: sympy.Basic) -> tuple[sympy.Symbol, Interval] | None:
    """`2*s - 3 > 0` as the integers that s can be; None for anything but one integer symbol, once."""
    if not isinstance(test, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
        return None
    symbols = test.free_symbols
    if len(symbols) != 1 or not (symbol := next(iter(symbols))).is_integer:
        return None
    slack = sympy.expand(test.gts - test.lts)  # what must not be negative
    if not slack.is_polynomial(symbol) or sympy.degree(slack, symbol) != 1:
        return None
    times, rest = slack.coeff(symbol, 1), slack.coeff(symbol, 0)
    if not times.is_Integer or not rest.is_Integer:
        return None
    least = rest - 1 if isinstance(test, (sympy.Lt, sympy.Gt)) else rest  # times * symbol + least >= 0
    edge = -least / times
    return symbol, ((sympy.ceiling(edge), sympy.oo) if times > 0 else (-sympy.oo, sympy.floor(edge)))
