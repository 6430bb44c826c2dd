"""Containers that a loop carries as copies, and everybody else who holds the same ones.

A name that rounds bind to another list or dict enters each round as a new one, built of what is carried: a copy. In the
user's code, the first round has the very container from before the loop, and a later one whatever the round before it
left there, which somebody else may hold as well. As long as nobody changes any of them, nobody can tell.

    first = out                 the first round puts a row into `first` too, and no other round does
    for row in x:
        out.append(row)
        out = out + [y]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.containers.rows import NoRows
from trueport.capture.effects.world import World
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import Round, Slot
from trueport.capture.values.disagreement import OutOfDate
from trueport.capture.values.maybe import value_of

Containers = dict[int, Any]


class Tangles:
    """Learns from each traced round which containers its copies stand for, and which of them the round changes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._behind: dict[int, Containers] = {}
        """By slot: the containers from before the loop that it may be."""
        self._changed: set[int] = set()
        """The slots whose copies rounds change."""
        self._shared: set[tuple[int, int]] = set()
        """Pairs of slots with one and the same container before the loop, or after a round. (That two slots have it one
    after the other, `a, b = b, a`, does no harm.)"""

    def learn(self, traced: Round) -> bool:
        """True if something new was found."""
        held = {id(slot): (slot, _containers(after)) for slot, after in self._holders(traced)}
        before = {key: _containers(slot.before) for key, (slot, _) in held.items()}
        for key, (_, found) in held.items():
            behind = self._behind.setdefault(key, {})
            for container in (*before[key].values(), *found.values()):
                if traced.was_there(container):
                    behind[id(container)] = container
            self._shared |= {
                (key, other)
                for other, (_, theirs) in held.items()
                if other != key and (found.keys() & theirs.keys() or before[key].keys() & before[other].keys())
            }
            if key in traced.copies and _containers(traced.copies[key]).keys() & traced.changed:
                self._changed.add(key)
        self._refuse_items(traced, held)
        outdated = self._outdate({key: slot for key, (slot, _) in held.items()})
        return self._tangle([slot for slot, _ in held.values()], traced) or outdated

    def tie(self, ends: dict[int, Any]) -> None:
        """After the loop, a list that it leaves may be one that others hold: a change of either spoils the other."""
        for key, end in ends.items():
            if not isinstance(end, TracedList):
                continue
            others = [
                *self._behind.get(key, {}).values(),
                *(ends[two] for one, two in self._shared if one == key and two in ends),
            ]
            name = next((slot.name for slot in self._plan.slots if id(slot) == key), "the list")
            why = OutOfDate(name, self._plan.place)
            for other in others:
                if isinstance(other, TracedList) and other is not end:
                    end.before_change.append(partial(_spoil, other, why))
                    other.before_change.append(partial(_spoil, end, why))

    def _holders(self, traced: Round) -> Iterator[tuple[Slot, Any]]:
        """The slots that are carried, and the very objects that the round left in them."""
        contents = ((c.slot, c.after(traced.changes)) for c in self._plan.contents.values())
        for slot, after in (*zip(self._plan.slots, traced.very, strict=True), *contents):
            if (slot.leaves is not None or slot.rows) and not slot.lost:
                yield slot, after

    def _outdate(self, slots: dict[int, Slot]) -> bool:
        """What a copy stands for is not changed with it: from the second round on, nobody may look at it."""
        known = len(self._plan.outdated)
        for key in self._changed & slots.keys():
            for container in self._behind[key].values():
                if id(container) not in self._plan.outdated:
                    self._plan.outdate(container, OutOfDate(slots[key].name, self._plan.place))
        return len(self._plan.outdated) > known

    def _tangle(self, slots: list[Slot], traced: Round) -> bool:
        """A copy of what others change does not change with it: no round may look at it, before it is bound anew."""
        new = False
        for slot in slots:
            key = id(slot)
            behind = self._behind[key].keys()
            others = self._changed - {key}
            by_itself = key in traced.copies and behind & traced.changed
            if slot.tangled is None and (by_itself or any((key, other) in self._shared for other in others)):
                slot.tangled = OutOfDate(slot.name, self._plan.place)
                new = True
        return new

    def _refuse_items(self, traced: Round, held: dict[int, tuple[Slot, Containers]]) -> None:
        """Lists that rounds put into a growing list are rows there: copies that nobody could keep up to date."""
        moving = {key for slot in self._changed & held.keys() for key in held[slot][1]}
        for filled in self._plan.lists:
            if id(filled) not in traced.rows:
                continue
            after = filled.after(traced, self._plan.left(traced))
            plain = () if after is None else tuple(part for part in after.parts if part.plain is not None)
            for key, container in _containers(plain).items():
                if key in moving or (key in traced.changed and traced.was_there(container)):
                    OutOfDate(filled.name, self._plan.place).complain()


def _spoil(items: TracedList, why: OutOfDate) -> None:
    items.hold(ListParts((NoRows(why),)))


def _containers(value: Any) -> Containers:
    """The lists, dicts and the like in a value, and itself."""
    return {id(container): container for container in World([value_of(value)]).containers()}
