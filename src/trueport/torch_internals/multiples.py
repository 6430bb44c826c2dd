"""A size rounded to a multiple, in the one form that arithmetic can go on with.

Every window attention pads `n` by `(7 - n % 7) % 7`. Torch keeps that as it is written: two remainders in a sum, of
which it knows neither that the sum is a multiple of 7 nor that the next `// 7` undoes it. After four stages of a model
a size has thousands of terms. The same number is `7 * ((n + 6) // 7)`; from there on everything cancels.

1. In a remainder by k, multiples of k go, and `m % k` is as good as m: `(k - n % k) % k` is `-n % k`.
2. A remainder is what division leaves: `n - n % k` is `k * (n // k)`, and `n + -n % k` is `k * ((n + k - 1) // k)`.
3. Two divisions are one: `(n // 4 + 1) // 2` is `(n + 4) // 8`.

Only what gets shorter is written otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import sympy
from torch.fx.experimental.sym_node import SymNode as _SymNode
from torch.utils._sympy.functions import FloorDiv as _FloorDiv
from torch.utils._sympy.functions import Mod as _Mod
from torch.utils._sympy.functions import PythonMod as _PythonMod

_REMAINDERS = (_Mod, _PythonMod)
Shorter = Callable[[sympy.Expr], sympy.Expr]


def remainder(expr: sympy.Expr) -> sympy.Expr:
    """Rule 1, of a remainder by a plain number."""
    if not isinstance(expr, _REMAINDERS) or not _is_positive(divisor := expr.args[1]):
        return expr
    terms = [term.as_coeff_Mul() for term in sympy.Add.make_args(expr.args[0])]
    if not any(_is_remainder(rest, divisor) for _, rest in terms):
        return expr
    plain = (factor * (rest.args[0] if _is_remainder(rest, divisor) else rest) for factor, rest in terms)
    left = (term for term in sympy.Add.make_args(sympy.expand(sympy.Add(*plain))) if not _is_multiple(term, divisor))
    return _PythonMod(sympy.Add(*left), divisor)


def rounded(expr: sympy.Expr) -> sympy.Expr:
    """Rule 2, of a sum."""
    if not expr.is_Add:
        return expr
    for term in expr.args:
        factor, found = term.as_coeff_Mul()
        if not isinstance(found, _REMAINDERS) or not _is_positive(found.args[1]) or not factor.is_Integer:
            continue
        number, divisor = found.args
        others = expr - term
        for same in (number, -number) if divisor == 2 else (number,):  # what is odd is odd below 0, too
            left = sympy.expand(others + factor * same)
            if len(sympy.Add.make_args(left)) < len(sympy.Add.make_args(others)) or left.is_Integer:
                return rounded(left - factor * divisor * _merged_floor(same, divisor))
    return expr


def quotient(expr: sympy.Expr) -> sympy.Expr:
    """Rule 3, of a quotient, to which torch may have added what was divided without a rest."""
    terms = sympy.Add.make_args(expr)
    merged = [_merged(term) for term in terms]
    return expr if all(new is old for new, old in zip(merged, terms, strict=True)) else sympy.Add(*merged)


def _merged(expr: sympy.Expr) -> sympy.Expr:
    if not isinstance(expr, _FloorDiv) or not _is_positive(expr.args[1]):
        return expr
    added, first = expr.args[0].as_coeff_Add()
    if not isinstance(first, _FloorDiv) or not _is_positive(first.args[1]) or not added.is_Integer:
        return expr
    return _FloorDiv(first.args[0] + added * first.args[1], first.args[1] * expr.args[1])


def without_floors(expr: sympy.Expr) -> tuple[sympy.Expr, sympy.Integer]:
    """A polynomial p and a number q, so that an integer `expr` is at least p/q in every run.

    `n // k` is at most n/k, and at least (n - k + 1)/k. Of `7 * ((n + 6) // 7) - n`, which torch takes to be anything,
    that leaves 0.
    """
    while True:
        terms = [term.as_coeff_Mul() for term in sympy.Add.make_args(sympy.expand(expr))]
        if not any(_is_floor(rest) for _, rest in terms):
            break
        expr = sympy.Add(*(factor * (_least(rest, factor < 0) if _is_floor(rest) else rest) for factor, rest in terms))
    scale = sympy.ilcm(1, *(factor.q for factor, _ in terms if factor.is_Rational))
    return sympy.expand(expr * scale), scale


def _least(floor: sympy.Expr, greatest: bool) -> sympy.Expr:
    number, divisor = floor.args
    return (number if greatest else number - divisor + 1) / divisor


def _is_floor(expr: sympy.Expr) -> bool:
    return isinstance(expr, _FloorDiv) and _is_positive(expr.args[1])


def _is_positive(number: sympy.Expr) -> bool:
    return bool(number.is_Integer and number > 0)


def _as_shown(node: _SymNode) -> _SymNode:
    """The same with its value for the sizes that torch is shown now: `width // (height // 16)`, in an arm that the
    example does not come to, is by 0 for the example's sizes, which a node keeps."""
    return _SymNode(node.expr, node.shape_env, node.pytype, None)


def _merged_floor(number: sympy.Expr, divisor: sympy.Integer) -> sympy.Expr:
    """`number // divisor`; of a number below 0 as what is rounded up: `-n // k` is `-((n + k - 1) // k)`."""
    if all(term.as_coeff_Mul()[0] < 0 for term in sympy.Add.make_args(number)):
        return -quotient(_FloorDiv(divisor - 1 - number, divisor))
    return quotient(_FloorDiv(number, divisor))


def _is_remainder(expr: sympy.Expr, divisor: sympy.Integer) -> bool:
    return isinstance(expr, _REMAINDERS) and _is_positive(expr.args[1]) and bool(expr.args[1] % divisor == 0)


def _is_multiple(term: sympy.Expr, divisor: sympy.Integer) -> bool:
    factor, rest = term.as_coeff_Mul()
    return bool(factor.is_Integer and factor % divisor == 0 and rest.is_integer)


_METHODS: dict[str, Shorter] = {"_add": rounded, "_sub": rounded, "_mod": remainder, "_int_floordiv": quotient}
"""The methods of torch's nodes, which both Python's operators and torch's kernels call."""


@contextlib.contextmanager
def multiples_told() -> Iterator[None]:
    """Meanwhile what is rounded to a multiple is said to be one."""
    before = {name: getattr(_SymNode, name) for name in _METHODS}

    def telling(name: str) -> Callable[[_SymNode, _SymNode], _SymNode]:
        itself, shorter = before[name], _METHODS[name]

        def method(left: _SymNode, right: _SymNode) -> _SymNode:
            try:
                made: _SymNode = itself(left, right)
            except ZeroDivisionError:
                made = itself(_as_shown(left), _as_shown(right))
            if made.pytype is not int or (expr := shorter(made.expr)) is made.expr:
                return made
            return _SymNode(expr, made.shape_env, int, made.hint if made.has_hint() else None)

        return method

    for name in _METHODS:
        setattr(_SymNode, name, telling(name))
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(_SymNode, name, method)
