"""What one tensor or number that a loop carries turns out to be: its dtype, its sizes, its range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from trueport.capture.loops.plan import FirstRoundDiffers, Plan
from trueport.capture.loops.slots import Carried, Slot
from trueport.capture.values.chosen import Chosen, all_candidates, candidates_of, made_anew, may_be_chosen
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import UNBOUND
from trueport.torch_internals.symbolic import expr_of

_PLAIN = (bool, int, float)


class Leaves:
    """Compares a leaf before a round with what the round left."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def learn(self, leaf: Carried | None, before: Any, start: Any, end: Any, mark: int, slot: Slot) -> Carried | None:
        if leaf is not None and leaf.candidates:
            return self._more_candidates(leaf, start, end, slot)
        if leaf is None:
            if before is not UNBOUND and (end is start or self._same(start, end)):
                return None
            return self._first_guess(before, start, end, mark, slot)
        if leaf.is_tensor:
            return self._widened(leaf, start, end, mark, slot)
        if isinstance(end, torch.Tensor):
            return self._as_tensor(before, end, mark)
        kind = number_kind(end)
        if number_order(kind) > number_order(leaf.kind):
            return replace(leaf, kind=kind, low=None)
        if leaf.low is not None and kind is int:
            lowest = end if isinstance(end, int) else self._plan.tracer.symbols.shapes.lowest(expr_of(end))
            if not bool(lowest >= leaf.low):
                return replace(leaf, low=None)
        return leaf

    def _first_guess(self, before: Any, start: Any, end: Any, mark: int, slot: Slot) -> Carried | None:
        if start is None and isinstance(end, (torch.Tensor, *_PLAIN, *Symbolic)):
            raise FirstRoundDiffers(self._plan)  # an item of a tuple or a list, which nobody asks `is None` of
        if isinstance(end, torch.Tensor):
            if before is UNBOUND or not isinstance(start, torch.Tensor):
                return self._as_tensor(before, end, mark)
            if start.dtype != end.dtype or start.dim() != end.dim():
                self._plan.disagree(slot, start, end)
            return self._widened(carried(start), start, end, mark, slot)
        if isinstance(end, Chosen) or (before is not UNBOUND and may_be_chosen(before) and may_be_chosen(end)):
            known = (end,) if before is UNBOUND else (before, end)
            first = candidates_of(end)[0] if before is UNBOUND else before
            return Carried(first, int, low=0, candidates=all_candidates(*known))
        if not isinstance(end, (*_PLAIN, *Symbolic)):
            if before is UNBOUND:
                return None
            self._plan.disagree(slot, start, end)
        kinds = [number_kind(v) for v in (end, start) if isinstance(v, (*_PLAIN, *Symbolic))]
        kind = max(kinds, key=number_order)
        begins = kind(0) if before is UNBOUND else before
        return Carried(begins, kind, low=first_low(self._plan, begins) if kind is int else None)

    def _more_candidates(self, leaf: Carried, start: Any, end: Any, slot: Slot) -> Carried:
        """One of several things; a round may leave another one."""
        if not may_be_chosen(end):
            self._plan.disagree(slot, start, end)
        known = all_candidates(*leaf.candidates, end)
        if len(known) == len(leaf.candidates):
            return leaf
        slot.lost = any(made_anew(leaf.candidates, candidate) for candidate in candidates_of(end))
        return replace(leaf, candidates=known)

    def _as_tensor(self, before: Any, end: torch.Tensor, mark: int) -> Carried:
        """A number, or nothing, before the loop; a tensor in it."""
        sizes = tuple(None if self._plan.is_inner(s, mark) else s for s in end.shape)
        return Carried(before, end.dtype, sizes, end.device)

    def _widened(self, leaf: Carried, start: Any, end: Any, mark: int, slot: Slot) -> Carried:
        if not isinstance(end, torch.Tensor):
            return leaf  # a number again in some round: it becomes a tensor like the others
        if end.dtype != leaf.kind or end.dim() != len(leaf.sizes or ()):
            self._plan.disagree(slot, start, end)
        size = self._plan.tracer.symbols.size
        assert leaf.sizes is not None
        sizes = tuple(
            None if s is None or size(a) != size(b) else s
            for s, a, b in zip(leaf.sizes, start.shape, end.shape, strict=True)
        )
        return (
            leaf
            if sizes == leaf.sizes or all(a is b for a, b in zip(sizes, leaf.sizes, strict=True))
            else replace(leaf, sizes=sizes)
        )

    def _same(self, start: Any, end: Any) -> bool:
        if isinstance(start, torch.Tensor) and isinstance(end, torch.Tensor):
            adopt = self._plan.tracer.adopt_all
            return self._plan.tracer.value(adopt(start)) is self._plan.last(end)
        if isinstance(start, Symbolic) and isinstance(end, Symbolic):
            return bool(expr_of(start) == expr_of(end))
        if isinstance(start, Chosen) or isinstance(end, Chosen):
            return False
        return type(start) is type(end) and not isinstance(start, (torch.Tensor, *Symbolic)) and bool(start == end)


def number_kind(number: Any) -> Any:
    if isinstance(number, (bool, torch.SymBool)):
        return bool
    return int if isinstance(number, (int, torch.SymInt)) else float


def number_order(kind: Any) -> int:
    return [bool, int, float].index(kind)


def first_low(plan: Plan, begins: Any) -> int | None:
    """What a number is at least before the first round, where that is 0 or more."""
    if isinstance(begins, bool) or not isinstance(begins, (int, torch.SymInt)):
        return None
    lowest = begins if isinstance(begins, int) else plan.tracer.symbols.shapes.lowest(expr_of(begins))
    return int(lowest) if lowest >= 0 else None


def carried(start: torch.Tensor) -> Carried:
    """A tensor that is carried as it begins."""
    return Carried(start, start.dtype, tuple(start.shape), start.device)
