"""What a loop may carry from round to round: names, parts of containers, tensors, lists that change their length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import ListParts, no_size
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows, common_shape, held_together
from trueport.capture.joins.meeting import TracedWay
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import Kind, ListKind, TensorKind
from trueport.capture.values.stores import ContainerChange, Store, store_of
from trueport.graph.regions import Number, Value
from trueport.load.containers import kind_of_container
from trueport.load.structures import FoundLeaf, Structure, flatten
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place


@dataclass
class Slot:
    """Something that a round may change: a name, the content of a container, or a tensor written in place.

    `leaves` is None while it is taken to stay as it is; otherwise one entry per leaf: the kind of tensor, number or
    thing that is carried, and None where a leaf stays.
    """

    name: str
    before: Any
    kind: Kind | None = None
    """Set where its leaves do not tell all: it may be None, or is a list of open length, or a conflict."""
    structure: Structure | None = None
    leaves: list[Kind | None] | None = None
    paths: list[str] = field(default_factory=list)
    """For each leaf, the way to it."""
    structure_leaves: list[Any] = field(default_factory=list)
    """What the leaves are before the loop; after a round where there are none before."""
    alike: list[list[torch.Tensor]] = field(default_factory=list)
    """For each leaf, the very tensors that it may be when a round begins or the loop ends."""
    stale: dict[int, Place] = field(default_factory=dict)
    """The leaves that may be out of date then, because another name of the same tensor was written: where."""
    flag_of: Slot | None = None
    """Another name that is None whenever this one is: they have one flag."""
    own_flag: bool = False
    """Set where no other name turned out to be None at the same times."""
    steady: bool | None = None
    """A truth value that is the same whenever a round begins, since the other one ends the loop; None before a round
    was traced."""
    tangled: Disagreement | None = None
    """Set where a round that looks at it would miss what others do to the same container."""

    @property
    def lost(self) -> bool:
        """Nobody may look at it in a round, or after the loop."""
        return self.kind is not None and self.kind.is_conflict

    @property
    def maybe(self) -> bool:
        """None before a round or after one: carried as a flag and a value."""
        return self.kind is not None and self.kind.is_optional

    @property
    def rows(self) -> bool:
        """A name whose lists have another length after each round: looked after elsewhere."""
        return isinstance(self.kind, ListKind) and self.kind.count is None

    def carry(self, model: Any, *leaves: Kind) -> list[FoundLeaf]:
        """Have it carried as something like `model`; where its leaves are not known yet, each stays so far."""
        found, self.structure = flatten(model, self.name)
        self.structure_leaves, self.paths = [leaf.value for leaf in found], [leaf.path for leaf in found]
        self.leaves, self.alike = list(leaves) or [None for _ in found], [[] for _ in found]
        return found

    def begins(self, leaf: int) -> Any:
        """What a leaf is before the first round."""
        nothing = self.before is UNBOUND or (self.maybe and self.before is None and leaf > 0)
        return UNBOUND if nothing else self.structure_leaves[leaf]

    def build(self, values: list[Any]) -> Any:
        """What it is made of these leaves: a list or a dict that may be left open, where it began as one."""
        assert self.structure is not None
        built, store = self.structure.build(values), store_of(self.before)
        return built if store is None else store.followed(self.before, built)


WHOLE = object()
"""The key of all that a container holds."""


@dataclass
class Content:
    """A part of a container that a round may change: what a dict holds under one key, or all of a list."""

    container: Any
    store: Store
    key: Any
    slot: Slot

    def put(self, value: Any) -> None:
        self.store.put(self.container, self.key, value)

    def after(self, changes: tuple[ContainerChange, ...]) -> Any:
        """What a round left here."""
        change = next((c for c in changes if c.container is self.container), None)
        if change is None:
            return self.slot.before
        return self.store.entry(change.after, self.key)


@dataclass
class Round(TracedWay):
    """One traced round. Its names are `after` it what it put into containers, which is undone, makes of them."""

    mark: int = 0
    """The point in the trace at which it began."""
    going: Any = True
    params: list[Value | Number] = field(default_factory=list)
    entered: dict[int, list[Any]] = field(default_factory=dict)
    rows: dict[int, Rows] = field(default_factory=dict)
    """What open lists held when the round began, by the list."""
    listed: dict[int, ListParts] = field(default_factory=dict)
    """By slot: what a list holds that the round gave to a name, taken before what the round wrote is undone."""
    copies: dict[int, Any] = field(default_factory=dict)
    """By slot: what entered the round in place of a container."""
    very: tuple[Any, ...] = ()
    """The very objects that names hold after the round."""
    changed: set[int] = field(default_factory=set)
    """The containers that the round itself changed."""
    written: set[int] = field(default_factory=set)
    """The memories that the round wrote in place."""
    iteration: Any = None

    def as_left(self, slot: Slot, value: Any) -> Any:
        """A value as the round left it; itself where nobody could tell, so that it is seen to be the same."""
        if value is slot.before or (slot.leaves is None and slot.before is UNBOUND and self.was_there(value)):
            return value
        if isinstance(value, ListParts) and value.items is not None:
            value = list(value.items)
        return self.left(value)


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
