"""What a loop may carry from round to round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.rows import Rows
from trueport.capture.graph import Number, Region, Value
from trueport.capture.recording.sharing import Left
from trueport.capture.recording.writes import Write
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import ContainerChange, Store, as_left, contents_after, store_of
from trueport.load.structures import Structure
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place


@dataclass(frozen=True)
class Carried:
    """One tensor or number that the loop carries.

    `sizes` holds None where the size changes from round to round. `low` is a bound that holds for a number in every
    round, as far as is known.
    """

    start: Any
    kind: torch.dtype | type
    sizes: tuple[Any, ...] | None = None
    device: torch.device | None = None
    low: int | None = None
    candidates: tuple[Any, ...] = ()
    """Texts, layers and the like, one of which it is: the number tells which."""

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.kind, torch.dtype)


@dataclass
class Slot:
    """Something that a round may change: a name, the content of a container, or a tensor written in place.

    `leaves` is None while it is taken to stay as it is; otherwise one entry per leaf, None where a leaf stays.
    """

    name: str
    before: Any
    structure: Structure | None = None
    leaves: list[Carried | None] | None = None
    structure_leaves: list[Any] = field(default_factory=list)
    alike: list[list[torch.Tensor]] = field(default_factory=list)
    """For each leaf, the very tensors that it may be when a round begins or the loop ends."""
    stale: dict[int, Place] = field(default_factory=dict)
    """The leaves that may be out of date then, because another name of the same tensor was written: where."""
    lost: bool = False
    maybe: bool = False
    """None before a round or after one: carried as a flag and a value."""
    flag_of: Slot | None = None
    """Another name that is None whenever this one is: they have one flag."""
    own_flag: bool = False
    """Set where no other name turned out to be None at the same times."""
    steady: bool | None = None
    """A truth value that is the same whenever a round begins, since the other one ends the loop; None before a round
    was traced."""
    rows: bool = False
    """A name whose lists have another length after each round: looked after elsewhere."""
    tangled: Disagreement | None = None
    """Set where a round that looks at it would miss what others do to the same container."""

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
class Round:
    """One traced round."""

    region: Region
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
    after: tuple[Any, ...] = ()
    """The same, with what the round put into containers, which is undone."""
    changed: set[int] = field(default_factory=set)
    """The containers that the round itself changed."""
    was_there: Callable[[Any], bool] = lambda _: False
    """Whether a container is older than the loop."""
    changes: tuple[ContainerChange, ...] = ()
    writes: tuple[Write, ...] = ()
    shared: Left = field(default_factory=Left)
    written: set[int] = field(default_factory=set)
    """The memories that the round wrote in place."""
    iteration: Any = None

    def as_left(self, slot: Slot, value: Any) -> Any:
        """A value as the round left it; itself where nobody could tell, so that it is seen to be the same."""
        if value is slot.before or (slot.leaves is None and slot.before is UNBOUND and self.was_there(value)):
            return value
        if isinstance(value, ListParts) and value.items is not None:
            value = list(value.items)
        return as_left(value, contents_after(self.changes))
