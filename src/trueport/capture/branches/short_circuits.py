"""`a and b` as one test, where nothing depends on b being left alone.

Python evaluates b only where a holds, and an `If` around b says just that. But where b cannot fail and does nothing
else, the graph that a person would write is `And(a, b)`, and the `if` around it is the only `If`.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch

from trueport.capture.joins.meeting import Arm
from trueport.graph.regions import Node, numbers_in, values_in
from trueport.torch_internals.symbolic import is_single, is_symbolic, plain_number, statement_of

aten = torch.ops.aten

_COMPARISONS = {aten.lt, aten.le, aten.gt, aten.ge, aten.eq, aten.ne, aten.isnan, aten.isinf, aten.isfinite}
_LOGIC = {aten.logical_and, aten.logical_or, aten.logical_not, aten.bitwise_and, aten.bitwise_or, aten.bitwise_not}
_ARITHMETIC = {aten.add, aten.sub, aten.mul, aten.neg, aten.abs, aten._to_copy}
_FUNCTIONS = {aten.sqrt, aten.exp, aten.log, aten.tanh, aten.sigmoid, aten.relu}
_REDUCTIONS = {aten.sum, aten.mean, aten.any, aten.all, aten._local_scalar_dense}
_CANNOT_FAIL = _COMPARISONS | _LOGIC | _ARITHMETIC | _FUNCTIONS | _REDUCTIONS
_BY_SIZES = {aten.max, aten.min, aten.amax, aten.amin, aten.argmax, aten.argmin, aten.linalg_vector_norm, aten.select}
"""What fails for some sizes (none is the largest of no numbers): not where they are plain, since the trace did it."""
_OF_NUMBERS = (sympy.Add, sympy.Mul, sympy.Max, sympy.Min, sympy.Rel, sympy.And, sympy.Or, sympy.Not)
_STEPS = frozenset(("FloatAdd", "FloatMul", "ToFloat"))
_DIVISIONS = frozenset(("Mod", "PythonMod", "FloorDiv", "FloatMod", "FloatFloorDiv", "FloatTrueDiv", "IntTrueDiv"))


def needs_no_branch(test: Any, arms: list[Arm]) -> bool:
    """Whether these are the arms of an `and` or an `or` whose second operand may be evaluated always."""
    second = second_operand(arms)
    if second is None or second.changes or second.writes or second.raised is not None:
        return False
    if not all(_cannot_fail(node) for node in second.region.nodes):
        return False
    said = statement_of(second.returned)
    if said is not None:
        return _is_defined(said)
    is_truth = is_single(second.returned) and second.returned.dtype is torch.bool
    return is_truth or isinstance(second.returned, bool)


def second_operand(arms: list[Arm]) -> Arm | None:
    """The arm that evaluates b, where the other only says False (`and`) or True (`or`)."""
    then, orelse = arms
    if orelse.returned is False and not orelse.region.nodes:
        return then
    return orelse if then.returned is True and not then.region.nodes else None


def combined(test: Any, arms: list[Arm]) -> Any:
    """The two operands as one test."""
    is_and = second_operand(arms) is arms[0]
    other = arms[0].returned if is_and else arms[1].returned
    if isinstance(other, bool):
        return test if other is is_and else other
    if is_symbolic(test) or is_symbolic(other):  # `x.sum() > 1 and n < 10`: two bools of Python's
        test, other = plain_number(test), plain_number(other)
    return test & other if is_and else test | other


def _cannot_fail(node: Node) -> bool:
    """Of several tensors, all but one hold a single number: sizes that only a fits cannot meet in b."""
    if node.call is None:
        return False
    values = values_in(node.given)
    if node.call.overloadpacket in _BY_SIZES:
        return not numbers_in(node.given) and all(value.has_plain_sizes for value in values)
    return node.call.overloadpacket in _CANNOT_FAIL and sum(bool(value.shape) for value in values) < 2


def _is_defined(expr: sympy.Basic) -> bool:
    """Whether an expression has a value whatever its symbols are: nothing is divided by something that may be 0."""
    if isinstance(expr, (sympy.Symbol, sympy.Number, sympy.logic.boolalg.BooleanAtom)):
        return True
    if type(expr).__name__ in _DIVISIONS:
        return bool(expr.args[1].is_number) and _is_defined(expr.args[0])
    is_step = isinstance(expr, _OF_NUMBERS) or type(expr).__name__ in _STEPS
    return is_step and all(_is_defined(arg) for arg in expr.args)
