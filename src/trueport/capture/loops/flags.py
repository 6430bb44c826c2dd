"""Flags that a loop carries, and when they need not be.

Names that are None at the same times (`best, where = None, None`, and both set in one arm) have one flag. It is taken
to be so, and a traced round shows whether it is: with one flag when it begins, both end with the same.

A flag that ends the loop (`done = False; while not done:`, and those that stand for `break` and `return`) is what it
was before the loop whenever a round begins. So a round begins with that plain value, and what a branch makes of it is
the branch's test.
"""

from __future__ import annotations

from typing import Any

import sympy

from trueport.capture.graph import Number
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import Round, Slot
from trueport.torch_internals.symbolic import same_value, statement_of


def learn_flags(plan: Plan, traced: Round) -> bool:
    """True where a name turned out to share a flag with another, or not to."""
    ends = {id(slot): (slot, plan.leaves_like(slot, after, [])) for slot, after in plan.left(traced) if _has_flag(slot)}
    new = False
    for slot, leaves in ends.values():
        if slot.flag_of is not None and (leaves is None or not _same_end(leaves, ends.get(id(slot.flag_of)))):
            slot.flag_of, slot.own_flag, new = None, True, True
        elif slot.flag_of is None and not slot.own_flag:
            other = next((one for one, _ in ends.values() if one is not slot and _may_lead(one, slot)), None)
            slot.flag_of, slot.own_flag = other, other is None
            new |= other is not None
    return new


def learn_steady(plan: Plan, traced: Round) -> bool:
    """True where a flag turned out to end the loop, or after all not to."""
    new = False
    for slot, after in plan.left(traced):
        if slot.steady is False or slot.maybe or type(slot.before) is not bool or not slot.leaves:
            continue
        steady = _goes_on_only_if(traced.going, slot.before, after)
        new |= steady is not slot.steady
        slot.steady = steady
    return new


def _goes_on_only_if(going: Any, before: bool, after: Any) -> bool:
    """Whether the loop goes on only where a flag is, after the round, what it was before the loop."""
    flag = statement_of(after)
    if flag is None or not isinstance(going, Number):
        return False
    return (flag if before else sympy.Not(flag)) in sympy.And.make_args(going.expr)


def _has_flag(slot: Slot) -> bool:
    return slot.maybe and not slot.lost and bool(slot.leaves) and slot.leaves is not None and slot.leaves[0] is not None


def _may_lead(one: Slot, slot: Slot) -> bool:
    """Whether it has a flag of its own that begins like this one's; it comes first among the names."""
    return one.own_flag and one.flag_of is None and one.structure_leaves[0] is slot.structure_leaves[0]


def _same_end(leaves: list[Any], leader: tuple[Slot, list[Any] | None] | None) -> bool:
    if leader is None or leader[1] is None:
        return False
    return same_value(leaves[0], leader[1][0])
