"""What a loop inside a round of another one carried, the last time that the round was traced.

The body of the outer loop is traced until nothing new turns up, and each time the inner loop begins anew. If it had to
find out again what it carries, loops within loops would cost twice or three times as much for each level. So it begins
with what it carried the last time, and one traced round shows that this still holds.

    1. Remembered are names that hold one tensor or one number, and tensors that are written in place. Whatever else a
       loop carries it finds out anew.
    2. Only kinds are remembered (dtype, which sizes change, a lower bound), no values: those of the last time are gone.
       A size or a tensor is kept only if it is older than the outermost loop.
    3. Carrying too much is no fault, but may be refused where less is not. So an outermost loop that fails while
       something is remembered in it begins once more without.
    4. What an inner loop finds out the first time is put off: the round around it goes on with results of the kinds
       that are known so far, and is traced again in any case. So all levels learn from one round each, and the next
       one shows that what they learned holds: n levels take 2 n rounds. Only where all that changes is remembered, and
       no number is what it was: it may change in a later round, and would be a plain one for what comes after.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import Round, Slot
from trueport.capture.values.kinds import Kind, NumberKind, TensorKind, Unbound, join
from trueport.load.values import NUMBERS
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place


@dataclass
class Outermost:
    """The outermost of several loops: the points in the trace at which it began."""

    symbols: int
    writes: int
    remembers: bool = True
    remembered: bool = False
    """Whether a loop in it began with what it carried the last time."""


@dataclass
class LastTime:
    """One loop, and the loops in its rounds."""

    outermost: Outermost
    names: dict[str, Slot] = field(default_factory=dict)
    bases: list[torch.Tensor] = field(default_factory=list)
    _inner: dict[tuple[Place, int], LastTime] = field(default_factory=dict)
    """By place, and which loop at that place it is within one round."""
    _begun: collections.Counter[Place] = field(default_factory=collections.Counter)
    unsettled: bool = False
    """Whether a loop was put off in the round that is being traced, which shows nothing of what holds then."""
    _was_put_off: bool = False

    def round_begins(self) -> None:
        self._begun.clear()
        self.unsettled = False

    def puts_off(self, plan: Plan) -> bool:
        """Whether a loop may go on from here, in a round of another one, before it has settled (4)."""
        others = plan.contents or plan.bases or plan.lists or plan.outdated
        if self._was_put_off or not self.outermost.remembers or plan.tracer.careful or others:
            return False
        self._was_put_off = all(_is_simple(slot) or _is_tensor_so_far(slot) for slot in plan.slots)
        self.outermost.remembered |= self._was_put_off
        return self._was_put_off

    def inner(self, place: Place) -> LastTime:
        """A loop that begins inside the round that is being traced."""
        self._begun[place] += 1
        return self._inner.setdefault((place, self._begun[place]), LastTime(self.outermost))

    def remember(self, plan: Plan) -> None:
        """A loop has settled."""
        self.names = {slot.name: slot for slot in plan.slots if _is_simple(slot)}
        is_old = plan.tracer.writes.is_old
        bases = [base for base, _ in plan.bases.values()]
        self.bases = [base for base in bases if is_old(plan.tracer.memory_of(base), self.outermost.writes)]

    def begin(self, plan: Plan) -> bool:
        """Have a loop carry what it carried the last time; True where there was something."""
        if not self.outermost.remembers:
            return False
        found = bool(self.bases)
        for slot in plan.slots:
            known = self.names.get(slot.name)
            if known is not None and slot.leaves is None:
                assert known.leaves is not None and known.leaves[0] is not None
                leaf = self._now(known.leaves[0], slot.before, plan)
                if leaf is not None:
                    _carry(slot, leaf, known, plan)
                    found = True
        for base in self.bases:
            slot = Slot("a tensor", base)
            _carry(slot, plan.kind_of(base), slot, plan)
            plan.bases[id(base)] = (base, slot)
        self.outermost.remembered |= found
        return found

    def _now(self, known: Kind, before: Any, plan: Plan) -> Kind | None:
        """What was carried the last time, beginning with another value; None where it does not fit."""
        match known, plan.kind_of(before):
            case TensorKind(), TensorKind() as now if now.dtype == known.dtype and len(now.sizes) == len(known.sizes):
                pairs = zip(known.sizes, now.sizes, strict=True)
                return replace(now, sizes=tuple(None if then is None else size for then, size in pairs))
            case TensorKind(), (Unbound() | NumberKind()) as now if isinstance(now, Unbound) or known.can_hold(now):
                gone = any(size is not None and plan.is_inner(size, self.outermost.symbols) for size in known.sizes)
                return None if gone else known
            case NumberKind(), Unbound():
                return known
            case NumberKind(), NumberKind() as now:
                wider = join(known, now)
                assert isinstance(wider, NumberKind)
                return NumberKind(wider.python, None if wider.low is None else now.low)
            case _:
                return None


def is_linked_anew(plan: Plan, traced: Round) -> bool:
    """Whether a name ends a round as a tensor that is older than the loop: in the next round a write reaches both.

    A loop that began with what is remembered has traced no round in which that was known.
    """
    tracer = plan.tracer
    ends = (after for slot, after in plan.left(traced) if slot.leaves and isinstance(after, torch.Tensor))
    return tracer.careful and any(tracer.writes.is_old(tracer.memory_of(end), plan.began) for end in ends)


def _is_simple(slot: Slot) -> bool:
    """A name that holds one tensor or one number in every round, and nothing that others hold, too."""
    if slot.leaves is None or len(slot.leaves) != 1 or slot.leaves[0] is None:
        return False
    plain = isinstance(slot.structure_leaves[0], (torch.Tensor, *NUMBERS)) and not slot.leaves[0].things
    return plain and not (slot.lost or slot.maybe or slot.rows or slot.stale) and slot.tangled is None


def _is_tensor_so_far(slot: Slot) -> bool:
    return slot.leaves is None and slot.kind is None and isinstance(slot.before, torch.Tensor)


def _carry(slot: Slot, leaf: Kind, known: Slot, plan: Plan) -> None:
    slot.carry(known.structure_leaves[0] if slot.before is UNBOUND else slot.before, leaf)
    slot.steady = known.steady if slot.before is known.before else None
    if isinstance(slot.before, torch.Tensor):
        slot.alike[0].append(slot.before)
        place = plan.tracer.writes.sharing.stale.get(plan.tracer.memory_of(slot.before))
        if place is not None:
            slot.stale[0] = place
