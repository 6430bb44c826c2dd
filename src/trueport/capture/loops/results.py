"""The finished loop: its node, and what names, containers and tensors hold after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from trueport.capture.containers.lists import ListParts
from trueport.capture.containers.rows import Rows
from trueport.capture.graph import Control, Node, Number, Returns, Value
from trueport.capture.joins.merging import inside
from trueport.capture.loops.lists import FilledList
from trueport.capture.loops.plan import Plan
from trueport.capture.loops.slots import Carried, Round, Slot
from trueport.capture.loops.tangles import Tangles
from trueport.capture.values.chosen import number_of
from trueport.load.structures import flatten
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import UNBOUND
from trueport.torch_internals import memory_of
from trueport.torch_internals.symbolic import expr_of


class Results:
    """Finishes one loop, as its last round was traced."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._tracer = plan, plan.tracer
        self._entered: dict[int, list[Any]] = {}
        self._flags: dict[int, Any] = {}
        """By slot: whether it is None after the loop."""

    def finish(self, traced: Round, trips: Any, first: Any, mark: int, tangles: Tangles) -> None:
        """Append the node, and leave names, containers and tensors with their last values."""
        inits: list[Any] = []
        outputs: list[Any] = []
        results: list[Value | Number] = []
        after: list[Any] = []
        self._entered = traced.entered
        self._tracer.writes.sharing.join(traced.shared)
        for slot, end in zip(self._plan.slots, traced.after, strict=True):
            after.append(self._settle(slot, end, inits, outputs, results))
        contents = []
        for content in self._plan.contents.values():
            end = traced.as_left(content.slot, content.after(traced.changes))
            contents.append((content, self._settle(content.slot, end, inits, outputs, results)))
        written = []
        for key, (base, slot) in self._plan.bases.items():
            fake = next((w.after for w in traced.writes if id(w.base) == key), None)
            end = base if fake is None else fake
            written.append((base, self._settle(slot, end, inits, outputs, results)))
        rounds = trips if traced.going is True else None  # a loop that may stop early runs fewer
        lists = self._settle_lists(traced, rounds, mark, inits, outputs, results)
        self._append(traced, trips, first, inits, outputs, results)
        named = {id(filled.holder): filled.leave(turns, self._plan.place) for filled, turns in lists}
        slots = zip(self._plan.slots, after, strict=True)
        ends = {id(slot): named[id(slot)] if slot.rows else last for slot, last in slots}
        self._plan.state.put(tuple(ends.values()))
        ends |= {id(content.slot): named[id(content.slot)] for content, _ in contents if content.slot.rows}
        tangles.tie(ends)
        for content, last in contents:
            content.put(named[id(content.slot)] if content.slot.rows else last)
        self._plan.spoil()
        for base, result in written:
            self._tracer.writes.put(base, self._tracer.fake_of(result))

    def _append(
        self, traced: Round, trips: Any, first: Any, inits: list[Any], outputs: list[Any], results: list[Value | Number]
    ) -> None:
        symbols = self._tracer.symbols
        count = trips if trips is None or isinstance(trips, int) else symbols.number_of(trips)
        begin = None if first is None else self._plan.control.predicate(first)
        traced.region.params = traced.params
        traced.region.outputs = [traced.going, *outputs]
        node = Node(
            Control.LOOP, (count, begin, *inits), {}, tuple(results), Returns.TUPLE, self._plan.place, (traced.region,)
        )
        if results:
            self._tracer.regions[-1].nodes.append(node)

    def _settle(self, slot: Slot, end: Any, inits: list[Any], outputs: list[Any], results: list[Any]) -> Any:
        """What a slot holds after the loop."""
        if slot.lost:
            return self._plan.lost(slot)
        if slot.leaves is None or slot.structure is None:
            return slot.before
        if isinstance(end, torch.Tensor) and not slot.maybe:
            ends: list[Any] | None = [end]
        else:
            ends = self._plan.leaves_like(slot, end, self._entered.get(id(slot), []))
        assert ends is not None
        values = []
        for i, (leaf, original, last) in enumerate(zip(slot.leaves, slot.structure_leaves, ends, strict=True)):
            if leaf is None:
                values.append(original if slot.before is not UNBOUND else last)
                continue
            if i == 0 and slot.flag_of is not None:
                values.append(self._flags[id(slot.flag_of)])
                continue
            inits.append(self._start(leaf))
            outputs.append(self._noted(last, leaf))
            values.append(self._result(leaf, results, slot, i))
        self._flags[id(slot)] = values[0] if slot.maybe else None
        return self._plan.held(slot, slot.build(values))

    def _start(self, leaf: Carried) -> Any:
        """The value before the first round; recorded in the scope around the loop where it has to be made."""
        if leaf.is_tensor:
            assert isinstance(leaf.kind, torch.dtype) and leaf.sizes is not None
            if isinstance(leaf.start, torch.Tensor):
                return self._tracer.value(self._tracer.adopt_all(leaf.start))
            if leaf.start is UNBOUND:
                return self._tracer.value(torch.zeros([0 if s is None else s for s in leaf.sizes], dtype=leaf.kind))
            made = torch.full((), leaf.start, dtype=leaf.kind)
            if leaf.sizes:
                made = made.expand([1 if s is None else s for s in leaf.sizes]).clone()
            return self._tracer.value(made)
        return self._noted(leaf.start, leaf)

    def _noted(self, value: Any, leaf: Carried) -> Any:
        if leaf.candidates:
            value = number_of(value)
        if isinstance(value, torch.Tensor):
            return self._plan.last(value)
        if isinstance(value, Symbolic):
            return self._tracer.symbols.number_of(value)
        return value if leaf.is_tensor else leaf.kind(value)  # type: ignore[operator]

    def _result(self, leaf: Carried, results: list[Any], slot: Slot, number: int) -> Any:
        shapes = self._tracer.symbols.shapes
        if leaf.is_tensor:
            assert leaf.sizes is not None and leaf.device is not None and isinstance(leaf.kind, torch.dtype)
            sizes = [shapes.new_data_size() if s is None else s for s in leaf.sizes]
            wrapper = self._tracer.fresh(leaf.kind, sizes, leaf.device)
            results.append(self._tracer.value(wrapper))
            self._plan.link(wrapper, slot, number)
            return wrapper
        assert isinstance(leaf.kind, type)
        made = shapes.new_data_number(leaf.kind, leaf.low)
        expr = expr_of(made)
        results.append(Number(expr.args[0] if leaf.kind is bool else expr, leaf.kind))
        return self._plan.number(leaf, made, slot)

    def _settle_lists(
        self, traced: Round, trips: Any, mark: int, inits: list[Any], outputs: list[Any], results: list[Any]
    ) -> list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]]:
        """The tensors that hold each list after the loop, a set for each item that a round appends; None if it stays.

        Lists that rounds only append to are scanned outputs, which come last.
        """
        settled: list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]] = []
        scanned: list[tuple[FilledList, list[Any]]] = []
        for filled in self._plan.lists:
            held = filled.after(traced, self._plan.left(traced))
            assert held is not None
            items = filled.appended(held, traced, lambda size: self._plan.is_inner(size, mark))
            if items is None:
                rows = self._settle(filled.slot, filled.end, inits, outputs, results)
                settled.append((filled, [rows]))
                self._shows_parts(rows, [part.tensors if isinstance(part, Rows) else part for part in held.parts])
                filled.before = ListParts(())
                continue
            unused = [self._tracer.value(tensor) for tensor in traced.rows[id(filled)].tensors]
            traced.params = [p for p in traced.params if not any(p is value for value in unused)]
            scanned.append((filled, items))
        for filled, items in scanned:
            if trips is None and items:
                trips = self._tracer.symbols.shapes.new_data_size()
            made = [self._scanned(filled, item, traced, trips, outputs, results) for item in items]
            settled.append((filled, made or None))
        return settled

    def _scanned(
        self, filled: FilledList, item: Any, traced: Round, trips: Any, outputs: list[Any], results: list[Any]
    ) -> tuple[torch.Tensor, ...]:
        """What a round appends, as a scanned output for each column."""
        with inside(self._tracer, traced.region):
            columns = [tensor.squeeze(0) for tensor in filled.shape.rows([item]).tensors]
            # Here, and not below: a view is made anew when it is read, in the region that is then open.
            outputs += [self._tracer.value(self._tracer.adopt_all(tensor)) for tensor in columns]
        made = []
        for tensor in columns:
            wrapper = self._tracer.fresh(tensor.dtype, [trips, *tensor.shape], tensor.device)
            results.append(self._tracer.value(wrapper))
            made.append(wrapper)
            if self._tracer.careful:
                self._stands_for(wrapper, item, traced)
                self._shows_parts([wrapper], item)
        return tuple(made)

    def _shows_parts(self, rows: Iterable[torch.Tensor], items: Any) -> None:
        """A list of views is out of date where somebody writes, after the loop, what they are parts of."""
        if self._tracer.careful:
            held = [v for leaf in flatten(items, "item")[0] if isinstance(v := leaf.value, torch.Tensor)]
            shown = self._plan.control.loops.rows_shown
            views = [tensor for tensor in held if not self._tracer.is_whole(tensor)]
            views += (view for tensor in held for view in shown.get(self._tracer.memory_of(tensor), ()))
            for tensor in rows:
                self._tracer.link(tensor, views, as_stale=False)

    def _stands_for(self, wrapper: torch.Tensor, item: Any, traced: Round) -> None:
        """The list holds the very tensors that rounds appended; out of date where a later round writes one of them.

        Where it is a view, `views.py` tells whether that may be.
        """
        tracer, sharing = self._tracer, self._tracer.writes.sharing
        whole = [v for leaf in flatten(item, "item")[0] if isinstance(v := leaf.value, torch.Tensor)]
        whole = [tensor for tensor in whole if tracer.is_whole(tensor)]
        tracer.link(wrapper, whole)
        entered = (value for values in traced.entered.values() for value in values)
        lasting = {tracer.memory_of(value) for value in entered if isinstance(value, torch.Tensor)}
        for memory in sharing.same_as(tracer.memory_of(tensor) for tensor in whole) & traced.written:
            if memory in lasting or tracer.writes.is_old(memory, self._plan.began):
                sharing.spoil(memory_of(wrapper), self._plan.place)
