"""What a symbolic number of torch's is made of. Everybody else asks here: `.node` is torch's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy
import torch

if TYPE_CHECKING:
    from trueport.torch_internals.shapes import DecidingShapes

SymbolicNumber = torch.SymInt | torch.SymFloat | torch.SymBool


def expr_of(number: SymbolicNumber) -> sympy.Basic:
    """The sympy expression that a number stands for, with all that is known of its symbols."""
    return number.node.expr


def shapes_of(number: SymbolicNumber) -> DecidingShapes:
    """The environment of the trace that a number was made in."""
    shapes: DecidingShapes = number.node.shape_env
    return shapes


def has_hint(number: SymbolicNumber) -> bool:
    """Whether the trace knows a value of it: a free size has one, a number that only the run tells has none."""
    return bool(number.node.has_hint())
