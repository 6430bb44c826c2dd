"""What a loop may carry from round to round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.rows import Rows
from trueport.capture.graph import Number, Value
from trueport.capture.joins.ways import TracedWay
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import Kind, ListKind
from trueport.capture.values.stores import ContainerChange, Store, store_of
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
