"""Learning from a traced round of a loop what its rounds change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from trueport.capture.containers.lists import ListParts, TracedList, held_in, is_open
from trueport.capture.containers.rows import NotAlike, Rows
from trueport.capture.joins.merging import inside, may_be_none
from trueport.capture.loops.flags import learn_flags, learn_steady
from trueport.capture.loops.leaves import Leaves, carried
from trueport.capture.loops.lists import FilledList
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import WHOLE, Content, Round, Slot
from trueport.capture.loops.tangles import Tangles
from trueport.capture.recording.sharing import Memory
from trueport.capture.values.chosen import Chosen, may_be_chosen
from trueport.capture.values.leaves import plain_leaves
from trueport.capture.values.maybe import flag_of, value_of
from trueport.capture.values.stores import ContainerChange
from trueport.load.structures import flatten
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place


class Learner:
    """Notes in the plan of a loop what a round turned out to change."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._leaves = Leaves(plan)
        self.tangles = Tangles(plan)

    def learn(self, traced: Round, mark: int) -> bool:
        """Compare what a round left with what it began with; True if something new was found."""
        new = False
        for slot, after in zip(self._plan.slots, traced.after, strict=True):
            new |= self._learn_slot(slot, after, traced, mark)
        for change in traced.changes:
            new |= self._learn_change(change, traced, mark)
        for content in self._plan.contents.values():
            left = traced.as_left(content.slot, content.after(traced.changes))
            new |= self._learn_slot(content.slot, left, traced, mark)
        for write in traced.writes:
            if id(write.base) not in self._plan.bases:
                slot = Slot("a tensor", write.base)
                slot.structure = flatten(write.base, "tensor")[1]
                slot.leaves = [carried(write.base)]
                slot.structure_leaves, slot.alike = [write.base], [[]]
                self._plan.bases[id(write.base)] = (write.base, slot)
                new = True
        new |= self._learn_lists(traced, mark)
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

    def _learn_change(self, change: ContainerChange, traced: Round, mark: int) -> bool:
        """A container that a round changed: a dict key by key, a list as a whole."""
        container, store = change.container, change.store
        why = store.why_spoiled(change.after)
        if why is not None:  # by a loop in this one
            return self._plan.outdate(container, why)
        if isinstance(change.after, ListParts):
            return self._learn_filling(change, mark)
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

    def _learn_filling(self, change: ContainerChange, mark: int) -> bool:
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
        self._carry_list(FilledList(self._name(change.container), change.before, change.container), change.after, mark)
        return True

    def _name(self, container: Any) -> str:
        return next((s.name for s in self._plan.slots if s.before is container), "the list")

    def _learn_slot(self, slot: Slot, after: Any, traced: Round, mark: int) -> bool:
        if slot.lost or slot.rows or (after is slot.before and slot.leaves is None):
            return False
        if slot.leaves is None:
            return self._begin_carrying(slot, after, traced, mark)
        if isinstance(slot.before, (TracedList, tuple)) and is_open(after):
            # It was as long after one round as before it, and is not after two.
            slot.leaves = None
            return self._begin_carrying(slot, after, traced, mark)
        entered = traced.entered[id(slot)]
        leaves = self._plan.leaves_like(slot, after, entered)
        if leaves is None:
            slot.lost = True
            return True
        new = self._remember(slot, leaves, traced.shared.stale)
        for start, end in zip(entered, leaves, strict=True):
            if isinstance(start, torch.Tensor) and isinstance(end, torch.Tensor):  # in the next round, this is that
                self._plan.tracer.link(start, [end], as_stale=False)
        for i, (leaf, start, end) in enumerate(zip(slot.leaves, entered, leaves, strict=True)):
            changed = self._leaves.learn(leaf, slot.structure_leaves[i], start, end, mark, slot)
            if changed is not leaf:
                slot.leaves[i], new = changed, True
        return new or slot.lost

    def _begin_carrying(self, slot: Slot, after: Any, traced: Round, mark: int) -> bool:
        """A slot turned out to change."""
        if (
            isinstance(slot.before, TracedList)
            and isinstance(after, TracedList)
            and _differ(slot.before.held, after.held)
        ):
            slot.rows = True
            self._carry_list(FilledList(slot.name, slot.before.held, None, slot), after.held, mark)
            return True
        if type(slot.before) is tuple and _is_longer_or_shorter(slot.before, after):
            slot.rows = True
            before = ListParts.plain(slot.before)
            self._carry_list(FilledList(slot.name, before, None, slot), held_in(after), mark)
            return True
        if is_open(after) or is_open(slot.before):
            slot.lost = True
            return True
        if may_be_none(slot.before, after):
            return self._begin_maybe(slot, after, traced, mark)
        model = after if slot.before is UNBOUND else slot.before
        if slot.before is UNBOUND and (traced.was_there(after) or not _is_carriable(after)):
            slot.before = after  # an object that each round makes or looks up: the last one stays
            return True
        found, structure = flatten(model, slot.name)
        slot.structure, slot.structure_leaves = structure, [leaf.value for leaf in found]
        slot.leaves, slot.alike = [None] * len(found), [[] for _ in found]
        ends = self._plan.leaves_like(slot, after, slot.structure_leaves)
        if ends is None or any(not leaf.known and not may_be_chosen(leaf.value) for leaf in found):
            slot.lost = True
            return True
        self._remember(slot, slot.structure_leaves, self._plan.tracer.writes.sharing.stale)
        self._remember(slot, ends, traced.shared.stale)
        for i, (start, end) in enumerate(zip(slot.structure_leaves, ends, strict=True)):
            begins = UNBOUND if slot.before is UNBOUND else start
            slot.leaves[i] = self._leaves.learn(None, begins, start, end, mark, slot)
        return True

    def _begin_maybe(self, slot: Slot, after: Any, traced: Round, mark: int) -> bool:
        """None before the loop, or after a round: from the next round on, a flag and a value."""
        slot.maybe = True
        something = value_of(after if slot.before is None else slot.before)
        found, structure = flatten((flag_of(slot.before), something), slot.name)
        slot.structure, slot.structure_leaves = structure, [leaf.value for leaf in found]
        slot.leaves, slot.alike = [None] * len(found), [[] for _ in found]
        ends = self._plan.leaves_like(slot, after, slot.structure_leaves)
        if ends is None:
            slot.lost = True
            return True
        self._remember(slot, slot.structure_leaves, self._plan.tracer.writes.sharing.stale)
        self._remember(slot, ends, traced.shared.stale)
        for i, (start, end) in enumerate(zip(slot.structure_leaves, ends, strict=True)):
            begins = UNBOUND if i > 0 and slot.before is None else start
            slot.leaves[i] = self._leaves.learn(None, begins, start, end, mark, slot)
        return True

    def _carry_list(self, filled: FilledList, after: ListParts, mark: int) -> None:
        """A list turned out to change its length: from the next round on, it enters as rows."""
        try:
            filled.carry(filled.shape_with(after, lambda size: self._plan.is_inner(size, mark)))
        except NotAlike:
            self._plan.cannot_grow(filled)
        self._plan.lists.append(filled)

    def _learn_lists(self, traced: Round, mark: int) -> bool:
        """Each list; again where a later one turned out to be made of its rows, which are read thereby."""
        new, lists = False, [filled for filled in self._plan.lists if id(filled) in traced.rows]
        while lists:
            unread = []
            for filled in lists:
                new |= self._learn_list(filled, traced, mark)
                if not traced.rows[id(filled)].was_read:
                    unread.append(filled)
            lists = [filled for filled in unread if traced.rows[id(filled)].was_read]
        return new

    def _learn_list(self, filled: FilledList, traced: Round, mark: int) -> bool:
        held = filled.after(traced, self._plan.left(traced))
        if held is None:
            self._plan.cannot_grow(filled)
        if filled.appended(held, traced, lambda size: self._plan.is_inner(size, mark)) is not None:
            return False
        try:
            shape = filled.shape_with(held, lambda size: self._plan.is_inner(size, mark))
            if not shape.same_as(filled.shape):
                filled.carry(shape)
                return True
            with inside(self._plan.tracer, traced.region):
                filled.end = held.rows(filled.shape).tensors
        except NotAlike:
            self._plan.cannot_grow(filled)
        if id(filled.slot) not in traced.entered:  # carried otherwise since: the next round will tell
            return True
        outdated = self._remember_outdated(filled, held, traced)
        return self._learn_slot(filled.slot, filled.end, traced, mark) or outdated

    def _remember_outdated(self, filled: FilledList, held: ListParts, traced: Round) -> bool:
        """A list that holds the very tensor that a round writes is out of date from then on; True unless it was known.

        out = [h]                   # as rows, it holds a copy
        for row in x:
            h += row
            out.insert(0, row)
        """
        tracer, known = self._plan.tracer, len(filled.slot.stale)
        earlier = any(isinstance(part, Rows) for part in held.parts)  # what earlier rounds put there is still in it
        for leaf in flatten([part.tensors if isinstance(part, Rows) else part for part in held.parts], "items")[0]:
            if isinstance(leaf.value, torch.Tensor):
                place = traced.shared.stale.get(tracer.memory_of(leaf.value))
                if place is None and earlier and self._written_by_rounds(leaf.value, traced):
                    place = self._plan.place
                if place is not None:
                    filled.slot.stale |= {i: place for i in range(len(filled.end)) if i not in filled.slot.stale}
        return len(filled.slot.stale) > known

    def _written_by_rounds(self, tensor: torch.Tensor, traced: Round) -> bool:
        """Whether a whole tensor from before the loop, or of the round before, is written in it."""
        tracer = self._plan.tracer
        if not tracer.careful or not tracer.is_whole(tensor):
            return False
        entered = (value for values in traced.entered.values() for value in values)
        lasting = {tracer.memory_of(value) for value in entered if isinstance(value, torch.Tensor)}
        written = tracer.writes.sharing.same_as([tracer.memory_of(tensor)]) & traced.written
        return any(memory in lasting or tracer.writes.is_old(memory, self._plan.began) for memory in written)


def _is_longer_or_shorter(before: tuple[Any, ...], after: Any) -> bool:
    """`out = (*out, row)`: a tuple that grows is a list to which nobody appends."""
    if is_open(after):
        return bool(after.stands_for is tuple)
    return type(after) is tuple and len(after) != len(before)


def _differ(before: ListParts, after: ListParts) -> bool:
    """Whether a list has, or may have, another length."""
    return before.items is None or after.items is None or len(before.items) != len(after.items)


def _is_carriable(value: Any) -> bool:
    leaves = plain_leaves(value, "value") or ()
    return bool(leaves) and all(leaf.known or isinstance(leaf.value, Chosen) for leaf in leaves)
