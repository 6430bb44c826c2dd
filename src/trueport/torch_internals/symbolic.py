"""What a symbolic number of torch's is made of, and what kind of number something is. `.node` is torch's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sympy
import torch
from torch.utils._sympy.functions import Min as _Min

from trueport.torch_internals.releases import either

if TYPE_CHECKING:
    from trueport.torch_internals.shapes import DecidingShapes

SymbolicNumber = torch.SymInt | torch.SymFloat | torch.SymBool
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_KINDS = {bool: (bool, torch.SymBool), int: (int, torch.SymInt), float: (float, torch.SymFloat)}


def expr_of(number: SymbolicNumber) -> sympy.Basic:
    """The sympy expression that a number stands for, with all that is known of its symbols."""
    return number.node.expr


def statement_of(test: object) -> sympy.Basic | None:
    """What a test on numbers says; None of a tensor, whose value tells nothing about numbers, and of a plain bool."""
    return expr_of(test) if isinstance(test, torch.SymBool) else None


def told_by(test: object, holds: bool, flag: object) -> bool | None:
    """What a flag is where a test holds, or does not: known if the test is this flag, or its opposite."""
    asked, said = statement_of(test), statement_of(flag)
    if asked is None or said is None:
        return None
    if asked == said:
        return holds
    return not holds if asked == statement_of(torch.sym_not(flag)) else None


def symbol_behind(number: SymbolicNumber) -> sympy.Basic:
    """What a number stands for that was made as one: a bool is an integer of 0 or 1, compared with 1."""
    expr = expr_of(number)
    return expr.args[0] if isinstance(number, torch.SymBool) else expr


def shapes_of(number: SymbolicNumber) -> DecidingShapes:
    """The environment of the trace that a number was made in."""
    shapes: DecidingShapes = number.node.shape_env
    return shapes


def has_hint(number: SymbolicNumber) -> bool:
    """Whether the trace knows a value of it: a free size has one, a number that only the run tells has none."""
    return bool(number.node.has_hint())


# --- numbers, plain and symbolic


def is_symbolic(value: object) -> bool:
    """Whether it is a number that is known only when the model runs."""
    return isinstance(value, _SYMBOLIC)


def is_traced(value: object) -> bool:
    """Whether it is such a number, or a tensor."""
    return isinstance(value, (torch.Tensor, *_SYMBOLIC))


def is_number(value: object) -> bool:
    """Whether it is a Python number, plain or symbolic."""
    return isinstance(value, (bool, int, float, *_SYMBOLIC))


def traced_flag(values: Iterable[object]) -> torch.SymBool | None:
    """The first of some arguments that is true or false only when the model runs."""
    return next((value for value in values if isinstance(value, torch.SymBool)), None)


def is_integer(value: object) -> bool:
    return isinstance(value, (int, torch.SymInt))


def number_kind(value: object) -> type[bool] | type[int] | type[float] | None:
    """What Python calls a number, plain or symbolic; None for what is none."""
    return next((kind for kind, kinds in _KINDS.items() if isinstance(value, kinds)), None)


def is_single(value: object) -> bool:
    """Whether it is a tensor of one value, without axes."""
    return isinstance(value, torch.Tensor) and value.dim() == 0


def plain_number(value: Any) -> Any:
    """A tensor of one element as the number that `.item()` gives."""
    return value.item() if isinstance(value, torch.Tensor) else value


def counted(value: Any) -> Any:
    """A symbolic bool as 0 or 1, as which Python computes with one; anything else as it is."""
    return either(value, 1, 0) if isinstance(value, torch.SymBool) else value


def same_number(one: Any, other: Any) -> bool:
    """Whether two numbers are the same in every run, without a question that the trace would note.

    `same_number(size, 1)`: the size is known to be 1.
    """
    first, second = (expr_of(number) if is_symbolic(number) else number for number in (one, other))
    return bool(first == second)


def same_stride(stride: Any, step: Any) -> bool:
    """Whether a tensor that is not empty has this stride in every run: torch says `Max(1, n)` for the rows in it."""
    found = sympy.sympify(expr_of(stride) if is_symbolic(stride) else stride)
    found = found.replace(_is_largest, lambda largest: sympy.Max(*(arg for arg in largest.args if arg != 1)))
    wanted = expr_of(step) if is_symbolic(step) else step
    return bool(sympy.expand(found - wanted) == 0)


def _is_largest(expr: sympy.Basic) -> bool:
    return type(expr).__name__ == "Max"  # sympy's, or torch's own


def same_value(one: Any, other: Any) -> bool:
    """Whether two things are the same in every run, as far as that can be told: tensors only where they are one."""
    if one is other:
        return True
    if is_symbolic(one) and is_symbolic(other):
        return same_number(one, other)
    return not is_traced(one) and type(one) is type(other) and bool(one == other)


def is_least_of(number: Any) -> bool:
    """Whether a number is the least of some: `x[:1]` has `Min(1, n)` rows."""
    return is_symbolic(number) and expr_of(number).has(_Min, sympy.Min)
