"""The finished loop: its node, and what names, containers and tensors hold after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from trueport.capture.containers.lists import ListParts
from trueport.capture.joins.meeting import inside
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import FilledList, Round, Slot
from trueport.capture.loops.tangles import Tangles
from trueport.capture.values.leaves import tensors_in
from trueport.graph.regions import Control, Node, Number, Returns, Value
from trueport.rewrite.running.runtime import UNBOUND
from trueport.torch_internals import from_functional, memory_of
from trueport.torch_internals.symbolic import is_symbolic


class Results:
    """Finishes one loop, as its last round was traced."""

    def __init__(self, plan: Plan, traced: Round) -> None:
        self._plan, self._tracer = plan, plan.tracer
        self._inits: list[Any] = []
        self._outputs: list[Any] = []
        self._results: list[Value | Number] = []
        self._traced = traced
        self._flags: dict[int, Any] = {}
        """By slot: whether it is None after the loop."""

    def finish(self, trips: Any, first: Any, tangles: Tangles) -> None:
        """Append the node, and leave names, containers and tensors with their last values."""
        traced = self._traced
        self._tracer.writes.sharing.join(traced.shared)
        ends = {id(slot): self._settle(slot, end) for slot, end in self._plan.left(traced)}
        written = []
        for key, (base, slot) in self._plan.bases.items():
            fake = next((w.after for w in traced.writes if id(w.base) == key), None)
            end = base if fake is None else fake
            written.append((base, self._settle(slot, end)))
        rounds = trips if traced.going is True else None  # a loop that may stop early runs fewer
        lists = self._settle_lists(rounds)
        self._append(trips, first)
        grown = [(filled.holder, filled.leave(turns, self._plan.place)) for filled, turns in lists]
        rows = {id(slot): made for slot, made in grown if slot is not None and slot.rows}
        ends |= rows
        names = {id(slot): ends[id(slot)] for slot in self._plan.slots}
        self._plan.state.put(tuple(names.values()))
        tangles.tie(names | rows)
        for content in self._plan.contents.values():
            content.put(ends[id(content.slot)])
        self._plan.spoil()
        for base, result in written:
            self._tracer.writes.put(base, from_functional(result))

    def _append(self, trips: Any, first: Any) -> None:
        traced, symbols = self._traced, self._tracer.symbols
        count = symbols.number_of(trips) if is_symbolic(trips) else trips
        begin = None if first is None else self._plan.control.predicate(first)
        traced.region.params = traced.params
        traced.region.outputs = [traced.going, *self._outputs]
        given, made = (count, begin, *self._inits), tuple(self._results)
        node = Node(Control.LOOP, given, {}, made, Returns.TUPLE, self._plan.place, (traced.region,))
        if made:
            self._tracer.regions[-1].nodes.append(node)

    def _settle(self, slot: Slot, end: Any) -> Any:
        """What a slot holds after the loop."""
        if slot.lost:
            return self._plan.lost(slot)
        if slot.leaves is None or slot.structure is None:
            return slot.before
        if isinstance(end, torch.Tensor) and not slot.maybe:
            ends: list[Any] | None = [end]
        else:
            ends = self._plan.leaves_like(slot, end, self._traced.entered.get(id(slot), []))
        assert ends is not None
        values = []
        for i, (leaf, original, last) in enumerate(zip(slot.leaves, slot.structure_leaves, ends, strict=True)):
            if leaf is None:
                values.append(original if slot.before is not UNBOUND else last)
                continue
            if i == 0 and slot.flag_of is not None:
                values.append(self._flags[id(slot.flag_of)])
                continue
            made, noted = self._plan.stand_in(leaf, slot, i)
            self._inits.append(self._plan.start(leaf, slot.begins(i)))
            self._outputs.append(self._plan.noted(leaf, last, self._traced.values))
            self._results.append(noted)
            values.append(made)
        self._flags[id(slot)] = values[0] if slot.maybe else None
        return self._plan.held(slot, slot.build(values))

    def _settle_lists(self, trips: Any) -> list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]]:
        """The tensors that hold each list after the loop, a set for each item that a round appends; None if it stays.

        Lists that rounds only append to are scanned outputs, which come last.
        """
        settled: list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]] = []
        scanned: list[tuple[FilledList, list[Any]]] = []
        traced = self._traced
        for filled in self._plan.lists:
            held = filled.after(traced, self._plan.left(traced))
            assert held is not None
            items = filled.appended(held, traced, self._plan.inside(traced))
            if items is None:
                rows = self._settle(filled.slot, filled.end)
                settled.append((filled, [rows]))
                self._shows_parts(rows, held.within)
                filled.before = ListParts(())
                continue
            unused = [self._tracer.value(tensor) for tensor in traced.rows[id(filled)].tensors]
            traced.params = [p for p in traced.params if not any(p is value for value in unused)]
            scanned.append((filled, items))
        for filled, items in scanned:
            if trips is None and items:
                trips = self._tracer.symbols.shapes.new_data_size()
            made = [self._scanned(filled, item, trips) for item in items]
            settled.append((filled, made or None))
        return settled

    def _scanned(self, filled: FilledList, item: Any, trips: Any) -> tuple[torch.Tensor, ...]:
        """What a round appends, as a scanned output for each column."""
        with inside(self._tracer, self._traced.region):
            columns = [tensor.squeeze(0) for tensor in filled.shape.rows([item]).tensors]
            # Here, and not below: a view is made anew when it is read, in the region that is then open.
            self._outputs += [self._tracer.value(self._tracer.adopt_all(tensor)) for tensor in columns]
        made = []
        for tensor in columns:
            wrapper = self._tracer.fresh(tensor.dtype, [trips, *tensor.shape], tensor.device)
            self._results.append(self._tracer.value(wrapper))
            made.append(wrapper)
            if self._tracer.careful:
                self._stands_for(wrapper, item)
                self._shows_parts([wrapper], item)
        return tuple(made)

    def _shows_parts(self, rows: Iterable[torch.Tensor], items: Any) -> None:
        """A list of views is out of date where somebody writes, after the loop, what they are parts of."""
        if self._tracer.careful:
            held, shown = tensors_in(items), self._plan.control.loops.rows_shown
            views = [tensor for tensor in held if not self._tracer.is_whole(tensor)]
            views += (view for tensor in held for view in shown.get(self._tracer.memory_of(tensor), ()))
            for tensor in rows:
                self._tracer.link(tensor, views, as_stale=False)

    def _stands_for(self, wrapper: torch.Tensor, item: Any) -> None:
        """The list holds the very tensors that rounds appended; out of date where a later round writes one of them.

        Where it is a view, `OpenRound` tells whether that may be.
        """
        held = tensors_in(item)
        self._tracer.link(wrapper, [tensor for tensor in held if self._tracer.is_whole(tensor)])
        if any(self._plan.written_by_rounds(tensor, self._traced) for tensor in held):
            self._tracer.writes.sharing.spoil(memory_of(wrapper), self._plan.place)
