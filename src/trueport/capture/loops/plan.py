"""What is known so far about one loop of traced length, and what its parts ask about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import torch

from trueport.capture import limits
from trueport.capture.containers.rows import IsInner
from trueport.capture.joins.meeting import MeetingWays
from trueport.capture.loops.slots import Content, FilledList, Round, Slot
from trueport.capture.recording.flow import Flow
from trueport.capture.recording.sharing import Memory
from trueport.capture.values import kinds
from trueport.capture.values.chosen import Chosen, candidates_of
from trueport.capture.values.disagreement import Disagreement, RoundsDisagree
from trueport.capture.values.kinds import made_anew
from trueport.capture.values.leaves import plain_leaves
from trueport.capture.values.maybe import Maybe, flag_of, value_of
from trueport.capture.values.stores import ContainerChange, store_of
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import Unwinding, refusal
from trueport.graph.regions import Number, Value
from trueport.rewrite.running.runtime import UNBOUND, BlockNames
from trueport.source import Place
from trueport.torch_internals import memory_of


class FirstRoundDiffers(Unwinding):
    """A name that is None before the loop is given to code that asks about it where the trace cannot see."""

    def __init__(self, plan: object) -> None:
        super().__init__()
        self.plan = plan


class Plan(MeetingWays):
    """The slots, containers, tensors and lists that the rounds of one loop change, as far as is known."""

    def __init__(self, control: Flow, state: BlockNames, place: Place, blocks: Sequence[Any]) -> None:
        self.control, self.tracer, self.state, self.place = control, control.tracer, state, place
        self.blocks = blocks
        self.before = state.get()
        self.slots = [Slot(name, value) for name, value in zip(state.names, self.before, strict=True)]
        for slot in self.slots:
            if isinstance(slot.before, float) and not math.isfinite(slot.before):
                slot.carry(slot.before, kinds.NumberKind(float))  # from the first round on: symbols know no infinities
        self.contents: dict[tuple[int, Any], Content] = {}
        self.bases: dict[int, tuple[torch.Tensor, Slot]] = {}
        """Tensors that rounds write in place, by id."""
        self.lists: list[FilledList] = []
        """Lists whose length the rounds change."""
        self.outdated: dict[int, tuple[Any, Disagreement]] = {}
        """Containers from before the loop that some rounds change, and others have forgotten, by id."""
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

    def written_by_rounds(self, tensor: torch.Tensor, traced: Round) -> bool:
        """Whether a whole tensor from before the loop, or of the round before, is written in it."""
        tracer = self.tracer
        if not tracer.is_whole(tensor):
            return False
        entered = (value for values in traced.entered.values() for value in values)
        lasting = {tracer.memory_of(value) for value in entered if isinstance(value, torch.Tensor)}
        written = tracer.writes.sharing.same_as([tracer.memory_of(tensor)]) & traced.written
        return any(memory in lasting or tracer.writes.is_old(memory, self.began) for memory in written)

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

    def disagreement(self, name: str, then: kinds.Kind = kinds.ONE, orelse: kinds.Kind = kinds.ANOTHER) -> Disagreement:
        return Disagreement(name, then, orelse, self.place)

    def lost(self, slot: Slot) -> Disagreement:
        one, other = slot.kind.sides if slot.lost and slot.kind is not None else (kinds.ONE, kinds.ANOTHER)
        return RoundsDisagree(f"`{slot.name}`", one, other, self.place)

    def held(self, slot: Slot, built: Any, again: Callable[[], None] | None = None) -> Any:
        """What a name holds whose carried leaves were put together; `again` where a None needs a round of its own."""
        return Maybe(built[0], built[1], f"`{slot.name}`", self.place, again) if slot.maybe else built

    def inside(self, traced: Round) -> IsInner:
        """Whether a size can be told only in a round."""
        return partial(self.is_inner, mark=traced.mark)

    def stand_in(self, leaf: kinds.Kind, slot: Slot, number: int) -> tuple[Any, Value | Number]:
        """A parameter of the body, or a result of the loop, and what it is in the graph."""
        made, noted = self.fresh(leaf.carried_as)
        if leaf.is_tensor:
            self.link(made, slot, number)
        return Chosen.by_number(made, leaf.things, self.lost(slot)) if leaf.things else made, noted

    def learned(self, slot: Slot, number: int, start: Any, end: Any, traced: Round) -> kinds.Kind | None:
        """What a leaf is of a slot that is carried, which began a round as `start` and ended it as `end`."""
        assert slot.leaves is not None
        leaf, begins = slot.leaves[number], slot.begins(number)
        known = self.kind_of(begins, {}) if leaf is None else leaf
        # What begins as no tensor needs one of that size before the first round.
        is_inner = self.is_inner if isinstance(begins, torch.Tensor) else self.is_no_size_elsewhere
        left = self.kind_of(end, traced.values, partial(is_inner, mark=traced.mark))
        if isinstance(known, kinds.NumberKind) and isinstance(left, kinds.TensorKind) and left.can_hold(known):
            known = left.elsewhere()  # `total = 0` before the loop stands for a tensor of zeros
        kind = known.widened(kinds.join(known, left))
        if kind.is_optional and start is None:
            raise FirstRoundDiffers(self)  # an item of a tuple or a list, which nobody asks `is None` of
        if kind.is_conflict or kind.is_optional:
            self.disagree(slot, known, left)
        if leaf is not None and any(made_anew(leaf.things, thing) for thing in candidates_of(end)):
            slot.kind = kinds.Conflict(leaf, left)
        return None if kind.is_settled else leaf if kind == leaf else kind

    def leaves_like(self, slot: Slot, after: Any, present: list[Any]) -> list[Any] | None:
        """The leaves of what a round left; `present` are those with which it began."""
        if slot.maybe and (after is None or not isinstance(after, Disagreement) or isinstance(after, Maybe)):
            if after is None:
                return [False, *present[1:]]
            after = (flag_of(after), value_of(after))
        if after is UNBOUND or (isinstance(after, Disagreement) and not isinstance(after, Chosen)):
            return None
        found = plain_leaves(after, slot.name)
        if found is None or [leaf.path for leaf in found] != slot.paths:  # the same keys, in the same order
            return None
        return [leaf.value for leaf in found]

    def disagree(self, slot: Slot, began: kinds.Kind, left: kinds.Kind) -> NoReturn:
        self._refuse(
            f"`{slot.name}` is {began.told} before a round of this loop, {left.told} after it",
            "changes what it is from round to round",
            "make it the same dtype and number of axes before the loop and in it",
        )

    def cannot_grow(self, filled: FilledList) -> NoReturn:
        self._refuse(
            f"this loop changes the length of `{filled.name}`, whose items are of different kinds",
            "changes the length of the list",
            "put tensors of one dtype and number of axes into the list",
        )

    def other_length(self, change: ContainerChange) -> NoReturn:
        self.ask_makers(change)
        kind = type(change.container).__name__
        self._refuse(
            f"this loop changes the length of {change.name}, a {kind} that was there before the model ran",
            f"changes the length of {change.name}",
            f"make the {kind} where the model runs, in `forward`; or keep what it holds in a buffer",
        )

    def give_up(self) -> NoReturn:
        self._refuse(
            "what this loop carries from round to round did not settle",
            "",
            "give the names that the loop changes their final dtype, rank and structure before it",
            limits.LOOP_ATTEMPTS,
        )

    def _refuse(self, message: str, label: str, fix: str, reached: limits.Limit | None = None) -> NoReturn:
        raise refusal(ArmsDisagree(message=message, place=self.place, label=label, fix=fix, **limits.told(reached)))
