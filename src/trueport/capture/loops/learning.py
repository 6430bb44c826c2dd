"""Learning from a traced round of a loop what its rounds change.

Flags that a loop carries, and when they need not be.

Names that are None at the same times (`best, where = None, None`, and both set in one arm) have one flag. It is taken
to be so, and a traced round shows whether it is: with one flag when it begins, both end with the same.

A flag that ends the loop (`done = False; while not done:`, and those that stand for `break` and `return`) is what it
was before the loop whenever a round begins. So a round begins with that plain value, and what a branch makes of it is
the branch's test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

from trueport.capture.containers.lists import ListParts, TracedList, held_in, is_open
from trueport.capture.containers.rows import NotAlike
from trueport.capture.joins.meeting import inside
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import WHOLE, Content, FilledList, Round, Slot
from trueport.capture.loops.tangles import Tangles
from trueport.capture.recording.sharing import Memory
from trueport.capture.values.chosen import may_be_chosen
from trueport.capture.values.kinds import Conflict, ListKind, Opaque, join
from trueport.capture.values.leaves import tensors_in
from trueport.capture.values.maybe import flag_of, value_of
from trueport.capture.values.stores import ContainerChange
from trueport.graph.regions import Number
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place
from trueport.torch_internals.symbolic import same_value, statement_of


class Learner:
    """Notes in the plan of a loop what a round turned out to change."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tangles = Tangles(plan)

    def learn(self, traced: Round) -> bool:
        """Compare what a round left with what it began with; True if something new was found."""
        new = False
        for slot, after in zip(self._plan.slots, traced.after, strict=True):
            new |= self._learn_slot(slot, after, traced)
        for change in traced.changes:
            new |= self._learn_change(change, traced)
        for content in self._plan.contents.values():
            left = traced.as_left(content.slot, content.after(traced.changes))
            new |= self._learn_slot(content.slot, left, traced)
        for write in traced.writes:
            if id(write.base) not in self._plan.bases:
                slot = Slot("a tensor", write.base)
                slot.carry(write.base, self._plan.kind_of(write.base))
                self._plan.bases[id(write.base)] = (write.base, slot)
                new = True
        new |= self._learn_lists(traced)
        new |= learn_flags(self._plan, traced)
        new |= learn_steady(self._plan, traced)
        new |= self.tangles.learn(traced)
        return self._learn_stale(traced) or new

    def _learn_stale(self, traced: Round) -> bool:
        """What a round leaves out of date is so when the next one begins."""
        writes, known = self._plan.tracer.writes, len(self._plan.stale)
        for memory, place in traced.shared.stale.items():
            if writes.is_old(memory, self._plan.began):
                self._plan.stale.setdefault(memory, place)
        return len(self._plan.stale) > known

    def _remember(self, slot: Slot, leaves: list[Any], stale: Mapping[Memory, Place]) -> bool:
        """Tensors that a leaf may be when a round begins; True where they are, unlike before, out of date."""
        known = len(slot.stale)
        for i, value in enumerate(leaves):
            if isinstance(value, torch.Tensor):
                slot.alike[i].append(value)
                place = stale.get(self._plan.tracer.memory_of(value)) if stale else None
                if place is not None:
                    slot.stale.setdefault(i, place)
        return len(slot.stale) > known

    def _learn_change(self, change: ContainerChange, traced: Round) -> bool:
        """A container that a round changed: a dict key by key, a list as a whole."""
        container, store = change.container, change.store
        why = store.why_spoiled(change.after)
        if why is not None:  # by a loop in this one
            return self._plan.outdate(container, why)
        if isinstance(change.after, ListParts):
            return self._learn_filling(change, traced)
        if (id(container), WHOLE) in self._plan.contents:
            return False
        keys = store.changed(self._plan, change)
        named = [(WHOLE, change.name.strip("`"))] if keys is None else [(key, str(key)) for key in keys]
        found = {
            (id(container), key): Content(container, store, key, Slot(name, store.entry(change.before, key)))
            for key, name in named
        }
        if found.keys() <= self._plan.contents.keys():
            return False
        self._plan.contents = {**found, **self._plan.contents}
        return True

    def _learn_filling(self, change: ContainerChange, traced: Round) -> bool:
        """A list that a round changed: carried item by item while it stays as long as it was, otherwise as rows."""
        key = (id(change.container), WHOLE)
        before, after = change.before.items, change.after.items
        if any(filled.container is change.container for filled in self._plan.lists):
            return False
        if before is not None and after is not None and len(before) == len(after):
            new = key not in self._plan.contents
            if new:
                slot = Slot(self._name(change.container), list(before))
                self._plan.contents[key] = Content(change.container, change.store, WHOLE, slot)
            return new
        self._plan.contents.pop(key, None)
        self._carry_list(
            FilledList(self._name(change.container), change.before, change.container), change.after, traced
        )
        return True

    def _name(self, container: Any) -> str:
        return next((s.name for s in self._plan.slots if s.before is container), "the list")

    def _learn_slot(self, slot: Slot, after: Any, traced: Round) -> bool:
        if slot.lost or slot.rows or (after is slot.before and slot.leaves is None):
            return False
        if slot.leaves is None:
            return self._begin_carrying(slot, after, traced)
        if isinstance(slot.before, (TracedList, tuple)) and is_open(after):
            # It was as long after one round as before it, and is not after two.
            slot.leaves = None
            return self._begin_carrying(slot, after, traced)
        entered = traced.entered[id(slot)]
        leaves = self._plan.leaves_like(slot, after, entered)
        if leaves is None:
            return self._lose(slot, after)
        for start, end in zip(entered, leaves, strict=True):
            if isinstance(start, torch.Tensor) and isinstance(end, torch.Tensor):  # in the next round, this is that
                self._plan.tracer.link(start, [end], as_stale=False)
        return self._learn_leaves(slot, entered, leaves, traced) or slot.lost

    def _learn_leaves(self, slot: Slot, starts: list[Any], ends: list[Any], traced: Round) -> bool:
        """What the leaves began a round as, and ended it: True where one turned out to be more than was known."""
        assert slot.leaves is not None
        new = self._remember(slot, ends, traced.shared.stale)
        for i, (leaf, start, end) in enumerate(zip(slot.leaves, starts, ends, strict=True)):
            slot.leaves[i] = self._plan.learned(slot, i, start, end, traced)
            new |= slot.leaves[i] is not leaf
        return new

    def _lose(self, slot: Slot, after: Any) -> bool:
        """Nothing is both what it was and what a round left: nobody may look at it from now on."""
        slot.kind = Conflict(*map(self._plan.kind_of, (slot.before, after)))
        return True

    def _begin_carrying(self, slot: Slot, after: Any, traced: Round) -> bool:
        """A slot turned out to change."""
        kinds = [self._plan.kind_of(value) for value in (slot.before, after)]
        kind = ListKind(tuple) if _grows(slot.before, after) else join(*kinds)
        if isinstance(kind, ListKind) and kind.count is None and slot.before is not UNBOUND:
            slot.kind = kind
            self._carry_list(FilledList(slot.name, held_in(slot.before), None, slot), held_in(after), traced)
            return True
        if is_open(after) or is_open(slot.before):
            return self._lose(slot, after)
        if slot.before is UNBOUND and (traced.was_there(after) or isinstance(kinds[1], Opaque)):
            slot.before = after  # an object that each round makes or looks up: the last one stays
            return True
        slot.kind = kind if kind.is_optional else None
        model = after if slot.before is UNBOUND else slot.before
        if slot.maybe:  # from the next round on, a flag and a value
            model = (flag_of(slot.before), value_of(after if slot.before is None else slot.before))
        found = slot.carry(model)
        ends = self._plan.leaves_like(slot, after, slot.structure_leaves)
        if ends is None or any(not leaf.known and not may_be_chosen(leaf.value) for leaf in found):
            return self._lose(slot, after)
        self._remember(slot, slot.structure_leaves, self._plan.tracer.writes.sharing.stale)
        self._learn_leaves(slot, slot.structure_leaves, ends, traced)
        return True

    def _carry_list(self, filled: FilledList, after: ListParts, traced: Round) -> None:
        """A list turned out to change its length: from the next round on, it enters as rows."""
        try:
            filled.carry(filled.shape_with(after, self._plan.inside(traced)), self._plan.kind_of_tensor)
        except NotAlike:
            self._plan.cannot_grow(filled)
        self._plan.lists.append(filled)

    def _learn_lists(self, traced: Round) -> bool:
        """Each list; again where a later one turned out to be made of its rows, which are read thereby."""
        new, lists = False, [filled for filled in self._plan.lists if id(filled) in traced.rows]
        while lists:
            unread = []
            for filled in lists:
                new |= self._learn_list(filled, traced)
                if not traced.rows[id(filled)].was_read:
                    unread.append(filled)
            lists = [filled for filled in unread if traced.rows[id(filled)].was_read]
        return new

    def _learn_list(self, filled: FilledList, traced: Round) -> bool:
        held = filled.after(traced, self._plan.left(traced))
        if held is None:
            self._plan.cannot_grow(filled)
        if filled.appended(held, traced, self._plan.inside(traced)) is not None:
            return False
        try:
            shape = filled.shape_with(held, self._plan.inside(traced))
            if not shape.same_as(filled.shape):
                filled.carry(shape, self._plan.kind_of_tensor)
                return True
            with inside(self._plan.tracer, traced.region):
                filled.end = held.rows(filled.shape).tensors
        except NotAlike:
            self._plan.cannot_grow(filled)
        if id(filled.slot) not in traced.entered:  # carried otherwise since: the next round will tell
            return True
        outdated = self._remember_outdated(filled, held, traced)
        return self._learn_slot(filled.slot, filled.end, traced) or outdated

    def _remember_outdated(self, filled: FilledList, held: ListParts, traced: Round) -> bool:
        """A list that holds the very tensor that a round writes is out of date from then on; True unless it was known.

        out = [h]                   # as rows, it holds a copy
        for row in x:
            h += row
            out.insert(0, row)
        """
        tracer, known = self._plan.tracer, len(filled.slot.stale)
        earlier = held.items is None  # what earlier rounds put there is still in it
        for tensor in tensors_in(held.within):
            place = traced.shared.stale.get(tracer.memory_of(tensor))
            if place is None and earlier and tracer.careful and self._plan.written_by_rounds(tensor, traced):
                place = self._plan.place
            if place is not None:
                filled.slot.stale |= {i: place for i in range(len(filled.end)) if i not in filled.slot.stale}
        return len(filled.slot.stale) > known


def _grows(before: Any, after: Any) -> bool:
    """`out = (*out, row)`: a tuple that gets longer, or shorter, is a list to which nobody appends."""
    if type(before) is not tuple:
        return False
    return after.stands_for is tuple if is_open(after) else type(after) is tuple and len(after) != len(before)


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
