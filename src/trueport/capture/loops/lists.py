"""A list whose length the rounds of a loop change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.containers.parts import no_size
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows, common_shape, held_together
from trueport.capture.loops.slots import Round, Slot
from trueport.capture.values.kinds import TensorKind
from trueport.load.containers import kind_of_container
from trueport.source import Place


@dataclass(eq=False)
class FilledList:
    """One list: an object that rounds change, or (where `container` is None) a name that rounds give new lists to."""

    name: str
    before: ListParts
    container: TracedList | None
    holder: Slot | None = None
    """That name, or the key of a dict, or the attribute."""
    slot: Slot = field(init=False)
    """The tensors of its rows, as something that the loop carries."""
    shape: ItemShape = field(init=False)
    end: tuple[torch.Tensor, ...] = ()
    """Those tensors at the end of the round that was traced last."""

    def carry(self, shape: ItemShape, kind_of: Callable[[torch.Tensor], TensorKind]) -> None:
        """Enter the next round as rows of this shape, of which there may be any number."""
        start = self.before.rows(shape).tensors
        self.shape, self.slot = shape, Slot(self.name, start)
        kinds = map(kind_of, start)
        self.slot.carry(start, *(replace(kind, sizes=(None, *kind.sizes[1:])) for kind in kinds))
        self.slot.alike = [[tensor] for tensor in start]

    def shape_with(self, after: ListParts, is_inner: Callable[[Any], bool]) -> ItemShape:
        """What all items are made of, those before the loop and those of a round."""
        return common_shape((self.before.shape(no_size), after.shape(is_inner)))

    def enter(self, traced: Round, tensors: tuple[torch.Tensor, ...]) -> None:
        traced.rows[id(self)] = Rows(self.shape, tuple(tensors))
        if self.container is not None:
            self.container.hold(ListParts((traced.rows[id(self)],)))

    def after(self, traced: Round, left: Iterable[tuple[Slot, Any]]) -> ListParts | None:
        """What the round left in it; None where it is no list any more."""
        if self.container is not None:
            change = next((c for c in traced.changes if c.container is self.container), None)
            held: ListParts = self.before if change is None else change.after
            return held
        if id(self.holder) in traced.listed:
            return traced.listed[id(self.holder)]
        after = next(value for slot, value in left if slot is self.holder)
        if type(after) in (list, tuple):  # another name's, which was carried item by item so far
            return ListParts.plain(after)
        return after.held if isinstance(after, TracedList) else None

    def appended(self, held: ListParts, traced: Round, is_inner: Callable[[Any], bool]) -> list[Any] | None:
        """The items that a round only adds, of sizes known outside it, to a list that it does not look at."""
        rows = traced.rows[id(self)]
        if rows.was_read or held.parts[0] is not rows or len(held.parts) > 2:
            return None
        added = held.parts[1].plain if len(held.parts) == 2 else ()
        if added is None:
            return None
        items = list(added)
        if any(column.is_packed for column in self.shape.columns):
            return None
        try:
            shape = ItemShape.of(items, is_inner) if items else self.shape
            return items if shape.join(self.shape).same_as(self.shape) else None
        except NotAlike:
            return None

    def holding(self, parts: ListParts) -> TracedList:
        """A list for the name: of the kind that it held before the loop."""
        assert self.holder is not None
        before = self.holder.before
        made: TracedList = before.holding(parts) if isinstance(before, TracedList) else TracedList.of(parts)
        made.stands_for = kind_of_container(before)
        return made

    def leave(self, turns: Sequence[tuple[torch.Tensor, ...]] | None, place: Place) -> TracedList:
        """The list after the loop: what it held before, then rows of what the appends of each round gave, in turn."""
        parts = self.before
        if turns is not None:
            columns = [
                turn[0] if len(turn) == 1 else held_together(torch.stack(turn, 1).flatten(0, 1), turn)
                for turn in zip(*turns, strict=True)
            ]
            parts = parts.then(ListParts((Rows(self.shape, tuple(columns)),)))
        made = self.container if self.container is not None else self.holding(parts)
        made.hold(parts)
        made.place = place
        return made
