"""Tracing one round of a loop: what is carried enters as parameters of the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueport.capture.containers.lists import ListParts, TracedList
from trueport.capture.effects.last_values import last_values
from trueport.capture.effects.world import World
from trueport.capture.loops.plan import FirstRoundDiffers, Plan
from trueport.capture.loops.slots import Round, Slot
from trueport.graph.regions import Number
from trueport.torch_internals import from_functional, memory_of
from trueport.torch_internals.symbolic import expr_of, is_traced

Step = Callable[[Any], Any]


class Rounds:
    """Traces rounds of one loop."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._tracer = plan, plan.tracer

    def trace(self, step: Step, iteration: int | None = None) -> Round:
        """One round; that with number `iteration`, or any."""
        tracer, sharing = self._tracer, self._tracer.writes.sharing
        roots = [*self._plan.control.roots, *self._plan.before, *self._plan.state.look()]
        world = World(roots, self._plan.blocks, self._plan.state.names)
        try:
            point, mark = sharing.writes, tracer.symbols.shapes.mark()
            with tracer.region() as region, sharing.arm() as shared, tracer.writes.watched() as writes:
                traced = Round(region, shared=shared, was_there=world.holds, mark=mark)
                for memory, place in self._plan.stale.items():
                    sharing.spoil(memory, place)
                traced.iteration = tracer.symbols.shapes.new_data_number(int, low=0)
                traced.params = [Number(expr_of(traced.iteration), int)]
                with self._plan.control.loops.round(region, traced.iteration, mark):
                    self._enter(traced)
                    entered = World([*roots, *traced.copies.values()], self._plan.blocks, self._plan.state.names)
                    going = step(traced.iteration if iteration is None else iteration)
                    traced.going = self._plan.control.predicate(going) if is_traced(going) else going
                    traced.very = self._plan.state.get()
                    changes = world.changes(tracer.writes.written_here())
                    traced.changes = tuple(c for c in changes if id(c.container) not in self._plan.outdated)
                    traced.changed = {id(change.container) for change in entered.changes()}
                    names = zip(self._plan.slots, traced.very, strict=True)
                    traced.after = tuple(traced.as_left(slot, value) for slot, value in names)
                    traced.listed = self._listed_apart(traced)
                traced.values = last_values(tracer, traced.after, [change.parts for change in traced.changes])
            traced.writes, traced.written = tuple(writes), sharing.written_since(point)
            sharing.keep_links(traced.shared)
        finally:
            world.restore()
            self._plan.state.put(self._plan.before)
        return traced

    def _enter(self, traced: Round) -> None:
        """Begin a round: carried things are parameters of the body."""
        self._plan.state.put(tuple(self._entering(slot, traced) for slot in self._plan.slots))
        for content in self._plan.contents.values():
            content.put(self._entering(content.slot, traced))
        for base, slot in self._plan.bases.values():
            self._tracer.writes.put(base, from_functional(self._entering(slot, traced)))
        for filled in self._plan.lists:
            filled.enter(traced, self._entering(filled.slot, traced))
        for filled in self._plan.lists:
            if filled.holder is not None:
                traced.copies[id(filled.holder)] = filled.holding(ListParts((traced.rows[id(filled)],)))
        present = zip(self._plan.slots, self._plan.state.get(), strict=True)
        self._plan.state.put(tuple(self._listed(slot, traced) if slot.rows else value for slot, value in present))
        for content in self._plan.contents.values():
            if content.slot.rows:
                content.put(self._listed(content.slot, traced))
        self._plan.spoil()

    def _listed_apart(self, traced: Round) -> dict[int, ListParts]:
        """The lists that rounds give to names, with copies of what this one wrote."""
        written = self._tracer.writes.written_here()
        left = [(slot, value) for slot, value in self._plan.left(traced) if slot.rows and isinstance(value, TracedList)]
        return {id(slot): value.held.apart(lambda t: memory_of(t) in written) for slot, value in left if written}

    def _listed(self, slot: Slot, traced: Round) -> Any:
        return traced.copies[id(slot)] if slot.tangled is None else slot.tangled

    def _entering(self, slot: Slot, traced: Round) -> Any:
        if slot.lost:
            return self._plan.lost(slot)
        if slot.leaves is None:
            return slot.before
        traced.copies[id(slot)] = built = self._built(slot, traced)
        if slot.tangled is not None:
            return slot.tangled
        return self._plan.held(slot, built, self._on_its_own)

    def _built(self, slot: Slot, traced: Round) -> Any:
        """What a round begins with, of the leaves that are carried and those that stay."""
        assert slot.structure is not None and slot.leaves is not None
        originals = slot.structure_leaves
        values = []
        for i, (leaf, original) in enumerate(zip(slot.leaves, originals, strict=True)):
            if i == 0 and slot.flag_of is not None:
                values.append(traced.entered[id(slot.flag_of)][0])
                continue
            entering = original
            if leaf is not None:
                entering, noted = self._plan.stand_in(leaf, slot, i)
                traced.params.append(noted)
            values.append(original if slot.steady else entering)
        traced.entered[id(slot)] = values
        return slot.build(values)

    def _on_its_own(self) -> None:
        raise FirstRoundDiffers(self._plan)
