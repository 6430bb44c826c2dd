"""What is known so far about one loop of traced length, and what its parts ask about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import torch

from trueport.capture import limits
from trueport.capture.effects.last_values import LastValues
from trueport.capture.graph import Region, Value
from trueport.capture.joins.merging import MeetingWays, describe
from trueport.capture.loops.lists import FilledList
from trueport.capture.loops.slots import Carried, Content, Round, Slot
from trueport.capture.recording.flow import Flow
from trueport.capture.recording.sharing import Memory
from trueport.capture.values.chosen import Chosen
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.leaves import plain_leaves
from trueport.capture.values.maybe import Maybe, flag_of, value_of
from trueport.capture.values.stores import ContainerChange, store_of
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError, Unwinding
from trueport.load.structures import flatten
from trueport.rewrite.running.runtime import UNBOUND, BlockNames
from trueport.source import Place
from trueport.torch_internals import memory_of
from trueport.torch_internals.symbolic import expr_of


class OpenRounds(Protocol):
    """The rounds that are traced just now (loops.py)."""

    @property
    def rows_shown(self) -> dict[Memory, list[torch.Tensor]]:
        """By what holds items of a list: the views that it stands for, of what rounds write, each its own row."""

    def round(self, region: Region, iteration: Any, mark: int) -> AbstractContextManager[None]: ...


class LoopFlow(Flow, Protocol):
    """The control flow of a trace that has loops."""

    @property
    def loops(self) -> OpenRounds: ...


class FirstRoundDiffers(Unwinding):
    """A name that is None before the loop is given to code that asks about it where the trace cannot see."""

    def __init__(self, plan: object) -> None:
        super().__init__()
        self.plan = plan


class Plan(MeetingWays):
    """The slots, containers, tensors and lists that the rounds of one loop change, as far as is known."""

    def __init__(self, control: LoopFlow, state: BlockNames, place: Place, blocks: Sequence[Any]) -> None:
        self.control, self.tracer, self.state, self.place = control, control.tracer, state, place
        self.blocks = blocks
        self.before = state.get()
        self.slots = [Slot(name, value) for name, value in zip(state.names, self.before, strict=True)]
        for slot in self.slots:
            if isinstance(slot.before, float) and not math.isfinite(slot.before):
                _carried_at_once(slot)
        self.contents: dict[tuple[int, Any], Content] = {}
        self.bases: dict[int, tuple[torch.Tensor, Slot]] = {}
        """Tensors that rounds write in place, by id."""
        self.lists: list[FilledList] = []
        """Lists whose length the rounds change."""
        self.outdated: dict[int, tuple[Any, Disagreement]] = {}
        """Containers from before the loop that some rounds change, and others have forgotten, by id."""
        self.values: LastValues = {}
        self.began = self.tracer.writes.mark()
        self.stale: dict[Memory, Place] = dict(self.tracer.writes.sharing.stale)
        """Tensors from before the loop that may be out of date when a round begins, because of an earlier one."""

    def link(self, wrapper: torch.Tensor, slot: Slot, leaf: int) -> None:
        """A parameter of the body, or a result of the loop, may be one of several tensors.

        It is out of date where what the loop began with was, or what a round ends with; not where a round wrote it, and
        thereby left only the tensor behind with which the loop began.
        """
        self.tracer.link(wrapper, slot.alike[leaf], as_stale=False)
        if leaf in slot.stale:
            self.tracer.writes.sharing.spoil(memory_of(wrapper), slot.stale[leaf])

    def left(self, traced: Round) -> list[tuple[Slot, Any]]:
        """What a round left in each name, and in each part of a container that is carried."""
        names = zip(self.slots, traced.after, strict=True)
        parts = ((c.slot, traced.as_left(c.slot, c.after(traced.changes))) for c in self.contents.values())
        return [*names, *parts]

    def outdate(self, container: Any, why: Disagreement) -> bool:
        """From the second round on, nobody may look at this container; True unless that was known."""
        if id(container) in self.outdated:
            return False
        self.outdated[id(container)] = (container, why)
        self.contents = {key: c for key, c in self.contents.items() if c.container is not container}
        self.lists = [filled for filled in self.lists if filled.container is not container]
        return True

    def spoil(self) -> None:
        """Make everything that is out of date say so when somebody looks."""
        for container, why in self.outdated.values():
            store = store_of(container)
            assert store is not None
            store.hold(container, store.spoiled(container, why))

    def disagreement(self, name: str, then: str, orelse: str) -> Disagreement:
        return Disagreement(name, then, orelse, self.place)

    def lost(self, slot: Slot) -> Disagreement:
        return self.disagreement(f"`{slot.name}`", describe(slot.before), "something else")

    def held(self, slot: Slot, built: Any, again: Callable[[], None] | None = None) -> Any:
        """What a name holds whose carried leaves were put together; `again` where a None needs a round of its own."""
        return Maybe(built[0], built[1], f"`{slot.name}`", self.place, again) if slot.maybe else built

    def number(self, leaf: Carried, made: Any, slot: Slot) -> Any:
        """What a carried number stands for: itself, or one of several things."""
        return Chosen.by_number(made, leaf.candidates, self.lost(slot)) if leaf.candidates else made

    def last(self, tensor: torch.Tensor) -> Value:
        """The value of a tensor at the end of the last traced round."""
        return self.values.get(id(tensor)) or self.tracer.value(self.tracer.adopt_all(tensor))

    def is_inner(self, size: Any, mark: int) -> bool:
        if isinstance(size, int):
            return False
        shapes = self.tracer.symbols.shapes
        return any(shapes.made_since(s, mark) for s in expr_of(size).free_symbols)

    def leaves_like(self, slot: Slot, after: Any, present: list[Any]) -> list[Any] | None:
        """The leaves of what a round left; `present` are those with which it began."""
        if slot.maybe and (after is None or not isinstance(after, Disagreement) or isinstance(after, Maybe)):
            if after is None:
                return [False, *present[1:]]
            after = (flag_of(after), value_of(after))
        if after is UNBOUND or (isinstance(after, Disagreement) and not isinstance(after, Chosen)):
            return None
        found = plain_leaves(after, slot.name)
        assert slot.structure is not None and slot.leaves is not None
        if found is None or len(found) != len(slot.structure_leaves):
            return None
        if len(found) > 1 or (found and found[0].value is not after):  # the same keys, in the same order
            known, _ = flatten(slot.structure.build(slot.structure_leaves), slot.name)
            if [leaf.path for leaf in found] != [leaf.path for leaf in known]:
                return None
        return [leaf.value for leaf in found]

    def disagree(self, slot: Slot, start: Any, end: Any) -> NoReturn:
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"`{slot.name}` is {describe(start)} before a round of this loop, {describe(end)} after it",
                    place=self.place,
                    label="changes what it is from round to round",
                    fix="make it the same dtype and number of axes before the loop and in it",
                )
            ]
        )

    def cannot_grow(self, filled: FilledList) -> NoReturn:
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"this loop changes the length of `{filled.name}`, whose items are of different kinds",
                    place=self.place,
                    label="changes the length of the list",
                    fix="put tensors of one dtype and number of axes into the list",
                )
            ]
        )

    def other_length(self, change: ContainerChange) -> NoReturn:
        self.ask_makers(change)
        kind = type(change.container).__name__
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"this loop changes the length of {change.name},"
                    f" a {kind} that was there before the model ran",
                    place=self.place,
                    label=f"changes the length of {change.name}",
                    fix=f"make the {kind} where the model runs, in `forward`; or keep what it holds in a buffer",
                )
            ]
        )

    def give_up(self) -> NoReturn:
        raise ExportError(
            [
                ArmsDisagree(
                    message="what this loop carries from round to round did not settle",
                    place=self.place,
                    seen=(limits.LOOP_ATTEMPTS.reached,),
                    fix="give the names that the loop changes their final dtype, rank and structure before it",
                    facts=limits.LOOP_ATTEMPTS.facts,
                )
            ]
        )


def _carried_at_once(slot: Slot) -> None:
    """`best = float("inf")` before the loop: carried from the first round on, since symbols know no infinities."""
    found, slot.structure = flatten(slot.before, slot.name)
    slot.structure_leaves, slot.alike = [leaf.value for leaf in found], [[] for _ in found]
    slot.leaves = [Carried(slot.before, float)]
