"""Arithmetic of traced Python floats, in the order in which the program does it.

Torch writes `n * 0.57 * 100` as a product of sympy's, which multiplies the two constants first; and `x % 1.0` as its
remainder of integers, which is 0. A float of Python's is rounded after each step, so each step is a function of its
own here, which sympy leaves alone: only two plain numbers are computed at once, as Python computes them.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import sympy
import torch
from sympy.core.sorting import default_sort_key
from torch.fx.experimental.sym_node import SymNode as _SymNode


class FloatOperation(sympy.Function):  # type: ignore[misc]
    """One step; `symbol` is how Python writes it."""

    nargs = (2,)
    is_real = True
    symbol: ClassVar[str]
    compute: ClassVar[Callable[[float, float], float]]
    commutes: ClassVar[bool] = False

    @classmethod
    def eval(cls, left: sympy.Basic, right: sympy.Basic) -> sympy.Basic | None:
        if left.is_Number and right.is_Number:
            return sympy.sympify(cls.compute(float(left), float(right)))
        if cls.commutes and default_sort_key(left) < default_sort_key(right):
            return cls(right, left)  # numbers last; the sum of two floats is the same either way
        return None

    def _sympystr(self, printer: Any) -> str:
        left, right = (printer._print(part) for part in self.args)
        return f"({left} {self.symbol} {right})"


class FloatAdd(FloatOperation):
    symbol, compute, commutes = "+", operator.add, True
    _torch_handler_name = "add"


class FloatMul(FloatOperation):
    symbol, compute, commutes = "*", operator.mul, True
    _torch_handler_name = "mul"


class FloatFloorDiv(FloatOperation):
    """`x // y`, which is not the quotient rounded down: that is rounded up before (`1.0 // 0.1` is 9)."""

    symbol, compute = "//", operator.floordiv
    _torch_handler_name = "pow"
    """The one function of two floats of which torch takes the range to be unknown."""


class FloatMod(FloatOperation):
    symbol, compute = "%", operator.mod
    _torch_handler_name = "pow"


PYTHON = {step.__name__: step.compute for step in (FloatAdd, FloatMul, FloatFloorDiv, FloatMod)}
"""What the names of the steps mean in Python code."""

_STEPS: dict[str, Callable[[sympy.Basic, sympy.Basic], sympy.Basic]] = {
    "_add": FloatAdd,
    "_sub": lambda left, right: FloatAdd(left, -right),
    "_mul": FloatMul,
    "_mod": FloatMod,
    "_int_floordiv": FloatFloorDiv,
}
"""The methods of torch's nodes, which both Python's operators and torch's kernels call."""


@contextlib.contextmanager
def floats_step_by_step() -> Iterator[None]:
    """Meanwhile the arithmetic of traced floats is kept step by step."""
    before = {name: getattr(_SymNode, name) for name in _STEPS}

    def stepwise(name: str) -> Callable[[_SymNode, _SymNode], _SymNode]:
        itself, step = before[name], _STEPS[name]

        def method(left: _SymNode, right: _SymNode) -> _SymNode:
            if left.pytype is not float or right.pytype is not float:
                return itself(left, right)  # type: ignore[no-any-return]
            made = step(left.expr, right.expr)
            known: list[Any] = [left.hint, right.hint]
            hints = [None if number is None else sympy.sympify(float(number)) for number in known]
            hint = None if None in hints else float(step(*hints))
            return _SymNode(made, left.shape_env, float, hint)

        return method

    for name in _STEPS:
        setattr(_SymNode, name, stepwise(name))
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(_SymNode, name, method)


def float_floor_division(left: Any, right: Any) -> torch.SymFloat:
    """`left // right` of two numbers of which one is a traced float."""
    one, other = (torch.sym_float(number) for number in (left, right))
    traced = one if isinstance(one, torch.SymFloat) else other
    nodes = [n.node if isinstance(n, torch.SymFloat) else traced.node.wrap_float(n) for n in (one, other)]
    return torch.SymFloat(nodes[0]._int_floordiv(nodes[1]))
