"""Expressions over sizes as Python code: torch's printer knows its own functions (`FloorDiv`, `PythonMod`, `Max`)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy.printers import PythonPrinter as _PythonPrinter

from trueport.torch_internals.float_arithmetic import PYTHON

Test = Callable[..., bool | None]
"""Whether an expression holds for these sizes; None where that depends on more than them."""


def as_python(expr: sympy.Basic, symbols: Sequence[sympy.Symbol]) -> Test:
    """The expression as a function of the sizes of these symbols, in their order.

    As code it takes microseconds; sympy takes a millisecond for each set of sizes. What torch cannot print, and what
    speaks of other symbols too, is left to sympy.
    """
    if expr.free_symbols <= set(symbols) and all(str(symbol).isidentifier() for symbol in symbols):
        try:
            code = _PythonPrinter().doprint(expr)
            known = {"math": math, "torch": torch, **PYTHON}
            function = eval(f"lambda {', '.join(map(str, symbols))}: {code}", known)
        except (NotImplementedError, TypeError, ValueError, SyntaxError, AttributeError):
            return _by_sympy(expr, symbols)
        return functools.partial(_asked, function)
    return _by_sympy(expr, symbols)


def _asked(function: Callable[..., object], *sizes: int) -> bool | None:
    try:
        return bool(function(*sizes))
    except ZeroDivisionError:
        return None


def _by_sympy(expr: sympy.Basic, symbols: Sequence[sympy.Symbol]) -> Test:
    def test(*sizes: int) -> bool | None:
        return truth_at(expr, dict(zip(symbols, sizes, strict=True)))

    return test


def with_sizes(expr: sympy.Basic, sizes: Mapping[sympy.Basic, Any]) -> sympy.Basic | None:
    """An expression for these sizes; None where it has no meaning for them: something is divided by a size of 0."""
    try:
        replaced: sympy.Basic = expr.xreplace({symbol: sympy.sympify(size) for symbol, size in sizes.items()})
    except ZeroDivisionError:
        return None
    return replaced


def truth_at(expr: sympy.Basic, sizes: Mapping[sympy.Basic, Any]) -> bool | None:
    """Whether it holds for these sizes; None where it says nothing of them."""
    holds = with_sizes(expr, sizes)
    return bool(holds) if holds in (sympy.true, sympy.false) else None


def without_common_factor(expr: sympy.Basic) -> sympy.Basic:
    """`96 * n != 96 * m` as `n != m`: torch compares strides and counts of elements, where the user knows sizes.

    Numbers that a comparison mentions are sizes to be tried; 96 channels are none.
    """
    if not isinstance(expr, (sympy.Eq, sympy.Ne)):
        return expr
    sides = [side.as_coeff_Mul() for side in expr.args]
    common = sympy.igcd(*(factor for factor, _ in sides)) if all(factor.is_Integer for factor, _ in sides) else 1
    if common <= 1:
        return expr
    return expr.func(*(factor / common * rest for factor, rest in sides))
