"""Loops of traced length as `Loop` regions.

What a round of the loop changes is found by tracing one: at first everything is taken to stay as it is; what turns out
to change is carried from round to round, a size that changes is left open, and the body is traced again until nothing
new turns up. Everything that the body reads and does not change is simply a value of the scope around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.disagreement import Disagreement
from trueport.capture.graph import Control, Node, Number, Returns, Value
from trueport.capture.last_values import LastValues, last_values
from trueport.capture.lists import Parts, TracedList, Unfilled, is_open
from trueport.capture.loop_lists import FilledList
from trueport.capture.maybe import Maybe, flag_of, value_of
from trueport.capture.merging import Symbolic, describe, inside, may_be_none
from trueport.capture.rows import NotAlike
from trueport.capture.slots import Carried, Content, Round, Slot
from trueport.capture.world import Change, World
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.load.structures import flatten
from trueport.rewrite.runtime import UNBOUND, State
from trueport.source import Place

if TYPE_CHECKING:
    from trueport.capture.control_flow import ControlFlow

_MOST_ATTEMPTS = 10
_PLAIN = (bool, int, float)
Step = Callable[[Any], Any]


class Loops:
    """Traces loops for one trace."""

    def __init__(self, control: ControlFlow) -> None:
        self._control = control
        self._tracer = control.tracer

    def run(self, step: Step, state: State, trips: Any, first: Any, blocks: Sequence[Any]) -> bool:
        """False where the first round is another than the others: it has to be traced on its own."""
        plan = _Plan(self._control, state, self._tracer.places.here(), blocks)
        first_round = False
        for _ in range(_MOST_ATTEMPTS):
            mark = self._tracer.symbols.shapes.mark()
            try:
                traced = plan.trace(step, 0 if first_round else None)
            except FirstRoundDiffers as differs:
                if differs.plan is not plan:
                    raise
                return False
            except Unfilled:
                if first_round:
                    raise
                first_round = True  # a list that only later rounds read: the very first round tells what is put into it
                continue
            if not plan.learn(traced, mark) and not first_round:
                plan.finish(traced, trips, first, mark)
                return True
            first_round = False
        return plan.give_up()


class FirstRoundDiffers(BaseException):
    """A name that is None before the loop is given to code that asks about it where the trace cannot see."""

    def __init__(self, plan: object) -> None:
        super().__init__()
        self.plan = plan


class _Plan:
    """What is known so far about one loop."""

    def __init__(self, control: ControlFlow, state: State, place: Place, blocks: Sequence[Any]) -> None:
        self._control, self._tracer, self._state, self._place = control, control.tracer, state, place
        self._blocks = blocks
        self._before = state.get()
        self._slots = [Slot(name, value) for name, value in zip(state.names, self._before, strict=True)]
        self._contents: dict[tuple[int, Any], Content] = {}
        self._bases: dict[int, tuple[torch.Tensor, Slot]] = {}
        self._lists: list[FilledList] = []
        self._values: LastValues = {}
        self._entered: dict[int, list[Any]] = {}

    # --- tracing one round

    def trace(self, step: Step, iteration: int | None = None) -> Round:
        """One round; that with number `iteration`, or any."""
        tracer = self._tracer
        roots = [self._control._model, *self._before, *self._state.look()]
        world = World(roots, self._blocks, self._state.names)
        try:
            with tracer.region() as region, tracer.writes.watched() as writes:
                traced = Round(region)
                traced.iteration = tracer.symbols.shapes.new_data_number(int, low=0)
                traced.params = [Number(traced.iteration.node.expr, int)]
                self._enter(traced)
                going = step(traced.iteration if iteration is None else iteration)
                traced.going = going if isinstance(going, bool) else self._control.predicate(going)
                traced.after = self._state.get()
                traced.changes = tuple(change.apart(tracer) for change in world.changes())
                self._values = last_values(tracer, traced.after, [change.after for change in traced.changes])
            traced.writes = tuple(writes)
        finally:
            world.restore()
            self._state.put(self._before)
        return traced

    def _enter(self, traced: Round) -> None:
        """Begin a round: carried things are parameters of the body."""
        self._state.put(tuple(self._entering(slot, traced) for slot in self._slots))
        for content in self._contents.values():
            content.put(self._entering(content.slot, traced))
        for base, slot in self._bases.values():
            self._tracer.writes.put(base, self._tracer.fake_of(self._entering(slot, traced)))
        for filled in self._lists:
            filled.enter(traced, self._entering(filled.slot, traced))
        named = {f.name: TracedList.of(Parts((traced.rows[id(f)],))) for f in self._lists if f.container is None}
        if named:
            present = zip(self._slots, self._state.get(), strict=True)
            self._state.put(tuple(named[slot.name] if slot.rows else value for slot, value in present))

    def _entering(self, slot: Slot, traced: Round) -> Any:
        if slot.lost:
            return Disagreement(f"`{slot.name}`", describe(slot.before), "something else", self._place)
        if slot.leaves is None:
            return slot.before
        originals = slot.structure_leaves
        values = []
        for leaf, original, alike in zip(slot.leaves, originals, slot.alike, strict=True):
            values.append(original if leaf is None else self._parameter(leaf, traced, alike))
        traced.entered[id(slot)] = values
        assert slot.structure is not None
        built = slot.structure.build(values)
        return Maybe(built[0], built[1], f"`{slot.name}`", self._place, self._on_its_own) if slot.maybe else built

    def _on_its_own(self) -> None:
        raise FirstRoundDiffers(self)

    def _parameter(self, leaf: Carried, traced: Round, alike: list[torch.Tensor]) -> Any:
        shapes = self._tracer.symbols.shapes
        if leaf.is_tensor:
            assert leaf.sizes is not None and leaf.device is not None and isinstance(leaf.kind, torch.dtype)
            sizes = [shapes.new_data_size() if s is None else s for s in leaf.sizes]
            wrapper = self._tracer.fresh(leaf.kind, sizes, leaf.device)
            traced.params.append(self._tracer.value(wrapper))
            self._tracer.link(wrapper, alike)
            return wrapper
        assert isinstance(leaf.kind, type)
        number = shapes.new_data_number(leaf.kind, leaf.low)
        expr = number.node.expr
        traced.params.append(Number(expr.args[0] if leaf.kind is bool else expr, leaf.kind))
        return number

    # --- learning from it

    def learn(self, traced: Round, mark: int) -> bool:
        """Compare what a round left with what it began with; True if something new was found."""
        new = False
        for slot, after in zip(self._slots, traced.after, strict=True):
            new |= self._learn_slot(slot, after, traced, mark)
        for change in traced.changes:
            new |= self._learn_change(change, traced, mark)
        for content in self._contents.values():
            new |= self._learn_slot(content.slot, content.after(traced.changes), traced, mark)
        for write in traced.writes:
            if id(write.base) not in self._bases:
                slot = Slot("a tensor", write.base)
                slot.structure = flatten(write.base, "tensor")[1]
                slot.leaves = [self._carried(write.base, None, mark)]
                slot.structure_leaves, slot.alike = [write.base], [[]]
                self._bases[id(write.base)] = (write.base, slot)
                new = True
        for filled in self._lists:
            new |= self._learn_list(filled, traced, mark)
        return new

    def _learn_change(self, change: Change, traced: Round, mark: int) -> bool:
        """A container that a round changed: a dict key by key, a list as a whole."""
        if isinstance(change.container, dict):
            before, after = change.before, change.after
            keys = [k for k in {**before, **after} if before.get(k, UNBOUND) is not after.get(k, UNBOUND)]
            found = {
                (id(change.container), k): Content(change.container, k, Slot(str(k), before.get(k, UNBOUND)))
                for k in keys
            }
            new = not found.keys() <= self._contents.keys()
            self._contents = {**found, **self._contents}
            return new
        if isinstance(change.container, TracedList):
            return self._learn_filling(change, mark)
        if (id(change.container), None) in self._contents:
            return False
        slot = Slot("a container", change.before)
        self._contents[id(change.container), None] = Content(change.container, None, slot)
        return True

    def _learn_filling(self, change: Change, mark: int) -> bool:
        """A list that a round changed: carried item by item while it stays as long as it was, otherwise as rows."""
        key = (id(change.container), None)
        before, after = change.before.items, change.after.items
        if any(filled.container is change.container for filled in self._lists):
            return False
        if before is not None and after is not None and len(before) == len(after):
            new = key not in self._contents
            if new:
                self._contents[key] = Content(change.container, None, Slot(self._name(change.container), list(before)))
            return new
        self._contents.pop(key, None)
        self._carry_list(FilledList(self._name(change.container), change.before, change.container), change.after, mark)
        return True

    def _name(self, container: Any) -> str:
        return next((s.name for s in self._slots if s.before is container), "the list")

    def _learn_slot(self, slot: Slot, after: Any, traced: Round, mark: int) -> bool:
        if slot.lost or slot.rows or (after is slot.before and slot.leaves is None):
            return False
        if slot.leaves is None:
            return self._begin_carrying(slot, after, mark)
        entered = traced.entered[id(slot)]
        leaves = self._leaves_like(slot, after, entered)
        if leaves is None:
            slot.lost = True
            return True
        _remember(slot, leaves)
        new = False
        for i, (leaf, start, end) in enumerate(zip(slot.leaves, entered, leaves, strict=True)):
            changed = self._learn_leaf(leaf, slot.structure_leaves[i], start, end, mark, slot)
            if changed is not leaf:
                slot.leaves[i], new = changed, True
        return new

    def _begin_carrying(self, slot: Slot, after: Any, mark: int) -> bool:
        """A slot turned out to change."""
        if (
            isinstance(slot.before, TracedList)
            and isinstance(after, TracedList)
            and _differ(slot.before.held, after.held)
        ):
            slot.rows = True
            self._carry_list(FilledList(slot.name, slot.before.held, None), after.held, mark)
            return True
        if is_open(after) or is_open(slot.before):
            slot.lost = True
            return True
        if may_be_none(slot.before, after):
            return self._begin_maybe(slot, after, mark)
        model = after if slot.before is UNBOUND else slot.before
        if slot.before is UNBOUND and not _is_carriable(after):
            slot.before = after  # an object that each round makes or looks up: the last one stays
            return True
        found, structure = flatten(model, slot.name)
        slot.structure, slot.structure_leaves = structure, [leaf.value for leaf in found]
        slot.leaves, slot.alike = [None] * len(found), [[] for _ in found]
        ends = self._leaves_like(slot, after, slot.structure_leaves)
        if ends is None or any(not leaf.known for leaf in found):
            slot.lost = True
            return True
        _remember(slot, slot.structure_leaves)
        _remember(slot, ends)
        for i, (start, end) in enumerate(zip(slot.structure_leaves, ends, strict=True)):
            begins = UNBOUND if slot.before is UNBOUND else start
            slot.leaves[i] = self._learn_leaf(None, begins, start, end, mark, slot)
        return True

    def _begin_maybe(self, slot: Slot, after: Any, mark: int) -> bool:
        """None before the loop, or after a round: from the next round on, a flag and a value."""
        slot.maybe = True
        something = value_of(after if slot.before is None else slot.before)
        found, structure = flatten((flag_of(slot.before), something), slot.name)
        slot.structure, slot.structure_leaves = structure, [leaf.value for leaf in found]
        slot.leaves, slot.alike = [None] * len(found), [[] for _ in found]
        ends = self._leaves_like(slot, after, slot.structure_leaves)
        if ends is None:
            slot.lost = True
            return True
        for i, (start, end) in enumerate(zip(slot.structure_leaves, ends, strict=True)):
            begins = UNBOUND if i > 0 and slot.before is None else start
            slot.leaves[i] = self._learn_leaf(None, begins, start, end, mark, slot)
        return True

    def _leaves_like(self, slot: Slot, after: Any, present: list[Any]) -> list[Any] | None:
        """The leaves of what a round left; `present` are those with which it began."""
        if slot.maybe and (after is None or not isinstance(after, Disagreement) or isinstance(after, Maybe)):
            if after is None:
                return [False, *present[1:]]
            after = (flag_of(after), value_of(after))
        if after is UNBOUND or isinstance(after, Disagreement):
            return None
        found, _ = flatten(after, slot.name)
        assert slot.structure is not None and slot.leaves is not None
        return [leaf.value for leaf in found] if len(found) == len(slot.structure_leaves) else None

    def _learn_leaf(
        self, leaf: Carried | None, before: Any, start: Any, end: Any, mark: int, slot: Slot
    ) -> Carried | None:
        if leaf is None:
            if before is not UNBOUND and (end is start or self._same(start, end)):
                return None
            return self._first_guess(before, start, end, mark, slot)
        if leaf.is_tensor:
            return self._widened(leaf, start, end, mark, slot)
        if isinstance(end, torch.Tensor):
            return self._as_tensor(before, end, mark)
        kind = _kind(end)
        if _order(kind) > _order(leaf.kind):
            return replace(leaf, kind=kind, low=None)
        if leaf.low is not None and kind is int:
            lowest = end if isinstance(end, int) else self._tracer.symbols.shapes.lowest(end.node.expr)
            if not bool(lowest >= leaf.low):
                return replace(leaf, low=None)
        return leaf

    def _first_guess(self, before: Any, start: Any, end: Any, mark: int, slot: Slot) -> Carried | None:
        if isinstance(end, torch.Tensor):
            if before is UNBOUND or not isinstance(start, torch.Tensor):
                return self._as_tensor(before, end, mark)
            if start.dtype != end.dtype or start.dim() != end.dim():
                self._disagree(slot, start, end)
            return self._widened(self._carried(start, None, mark), start, end, mark, slot)
        if not isinstance(end, (*_PLAIN, *Symbolic)):
            if before is UNBOUND:
                return None
            self._disagree(slot, start, end)
        kinds = [_kind(v) for v in (end, start) if isinstance(v, (*_PLAIN, *Symbolic))]
        kind = max(kinds, key=_order)
        begins = kind(0) if before is UNBOUND else before
        low = (
            begins if kind is int and isinstance(begins, int) and not isinstance(begins, bool) and begins >= 0 else None
        )
        return Carried(begins, kind, low=low)

    def _as_tensor(self, before: Any, end: torch.Tensor, mark: int) -> Carried:
        """A number, or nothing, before the loop; a tensor in it."""
        sizes = tuple(None if self._is_inner(s, mark) else s for s in end.shape)
        return Carried(before, end.dtype, sizes, end.device)

    def _carried(self, start: torch.Tensor, _end: Any, mark: int) -> Carried:
        return Carried(start, start.dtype, tuple(start.shape), start.device)

    def _widened(self, leaf: Carried, start: Any, end: Any, mark: int, slot: Slot) -> Carried:
        if not isinstance(end, torch.Tensor):
            return leaf  # a number again in some round: it becomes a tensor like the others
        if end.dtype != leaf.kind or end.dim() != len(leaf.sizes or ()):
            self._disagree(slot, start, end)
        size = self._tracer.symbols.size
        assert leaf.sizes is not None
        sizes = tuple(
            None if s is None or size(a) != size(b) else s
            for s, a, b in zip(leaf.sizes, start.shape, end.shape, strict=True)
        )
        return (
            leaf
            if sizes == leaf.sizes or all(a is b for a, b in zip(sizes, leaf.sizes, strict=True))
            else replace(leaf, sizes=sizes)
        )

    def _same(self, start: Any, end: Any) -> bool:
        if isinstance(start, torch.Tensor) and isinstance(end, torch.Tensor):
            adopt = self._tracer.adopt_all
            return self._tracer.value(adopt(start)) is self._last(end)
        if isinstance(start, Symbolic) and isinstance(end, Symbolic):
            return bool(start.node.expr == end.node.expr)
        return type(start) is type(end) and not isinstance(start, (torch.Tensor, *Symbolic)) and bool(start == end)

    def _is_inner(self, size: Any, mark: int) -> bool:
        if isinstance(size, int):
            return False
        shapes = self._tracer.symbols.shapes
        return any(shapes.made_since(s, mark) for s in size.node.expr.free_symbols)

    def _disagree(self, slot: Slot, start: Any, end: Any) -> None:
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"`{slot.name}` is {describe(start)} before a round of this loop, {describe(end)} after it",
                    place=self._place,
                    label="changes what it is from round to round",
                    fix="make it the same dtype and number of axes before the loop and in it",
                )
            ]
        )

    def give_up(self) -> bool:
        raise ExportError(
            [
                ArmsDisagree(
                    message="what this loop carries from round to round did not settle",
                    place=self._place,
                    fix="give the names that the loop changes their final dtype, rank and structure before it",
                )
            ]
        )

    # --- the finished loop

    def finish(self, traced: Round, trips: Any, first: Any, mark: int) -> None:
        """Append the node, and leave names, containers and tensors with their last values."""
        inits: list[Any] = []
        outputs: list[Any] = []
        results: list[Value | Number] = []
        after: list[Any] = []
        self._entered = traced.entered
        for slot, end in zip(self._slots, traced.after, strict=True):
            after.append(self._settle(slot, end, inits, outputs, results))
        contents = []
        for content in self._contents.values():
            end = content.after(traced.changes)
            contents.append((content, self._settle(content.slot, end, inits, outputs, results)))
        written = []
        for key, (base, slot) in self._bases.items():
            fake = next((w.after for w in traced.writes if id(w.base) == key), None)
            end = base if fake is None else fake
            written.append((base, self._settle(slot, end, inits, outputs, results)))
        rounds = trips if traced.going is True else None  # a loop that may stop early runs fewer
        lists = self._settle_lists(traced, rounds, mark, inits, outputs, results)
        self._append(traced, trips, first, inits, outputs, results)
        named = {filled.name: filled.leave(turns, self._place) for filled, turns in lists}
        self._state.put(tuple(named[s.name] if s.rows else a for s, a in zip(self._slots, after, strict=True)))
        for content, last in contents:
            content.put(last)
        for base, result in written:
            self._tracer.writes.put(base, self._tracer.fake_of(result))

    def _append(
        self, traced: Round, trips: Any, first: Any, inits: list[Any], outputs: list[Any], results: list[Value | Number]
    ) -> None:
        symbols = self._tracer.symbols
        count = trips if trips is None or isinstance(trips, int) else symbols.number_of(trips)
        begin = None if first is None else self._control.predicate(first)
        traced.region.params = traced.params
        traced.region.outputs = [traced.going, *outputs]
        node = Node(
            Control.LOOP, (count, begin, *inits), {}, tuple(results), Returns.TUPLE, self._place, (traced.region,)
        )
        if results:
            self._tracer.regions[-1].nodes.append(node)

    def _settle(self, slot: Slot, end: Any, inits: list[Any], outputs: list[Any], results: list[Any]) -> Any:
        """What a slot holds after the loop."""
        if slot.lost:
            return Disagreement(f"`{slot.name}`", describe(slot.before), "something else", self._place)
        if slot.leaves is None or slot.structure is None:
            return slot.before
        if isinstance(end, torch.Tensor) and not slot.maybe:
            ends: list[Any] | None = [end]
        else:
            ends = self._leaves_like(slot, end, self._entered.get(id(slot), []))
        assert ends is not None
        values = []
        for leaf, original, last, alike in zip(slot.leaves, slot.structure_leaves, ends, slot.alike, strict=True):
            if leaf is None:
                values.append(original if slot.before is not UNBOUND else last)
                continue
            inits.append(self._start(leaf))
            outputs.append(self._noted(last, leaf))
            values.append(self._result(leaf, results, alike))
        built = slot.structure.build(values)
        return Maybe(built[0], built[1], f"`{slot.name}`", self._place, None) if slot.maybe else built

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

    def _last(self, tensor: torch.Tensor) -> Value:
        """The value of a tensor at the end of the last traced round."""
        return self._values.get(id(tensor)) or self._tracer.value(self._tracer.adopt_all(tensor))

    def _noted(self, value: Any, leaf: Carried) -> Any:
        if isinstance(value, torch.Tensor):
            return self._last(value)
        if isinstance(value, Symbolic):
            return self._tracer.symbols.number_of(value)
        return value if leaf.is_tensor else leaf.kind(value)  # type: ignore[operator]

    def _result(self, leaf: Carried, results: list[Any], alike: list[torch.Tensor]) -> Any:
        shapes = self._tracer.symbols.shapes
        if leaf.is_tensor:
            assert leaf.sizes is not None and leaf.device is not None and isinstance(leaf.kind, torch.dtype)
            sizes = [shapes.new_data_size() if s is None else s for s in leaf.sizes]
            wrapper = self._tracer.fresh(leaf.kind, sizes, leaf.device)
            results.append(self._tracer.value(wrapper))
            self._tracer.link(wrapper, alike)
            return wrapper
        assert isinstance(leaf.kind, type)
        number = shapes.new_data_number(leaf.kind, leaf.low)
        expr = number.node.expr
        results.append(Number(expr.args[0] if leaf.kind is bool else expr, leaf.kind))
        return number

    # --- lists

    def _carry_list(self, filled: FilledList, after: Parts, mark: int) -> None:
        """A list turned out to change its length: from the next round on, it enters as rows."""
        try:
            filled.carry(filled.shape_with(after, lambda size: self._is_inner(size, mark)))
        except NotAlike:
            self._cannot_grow(filled)
        self._lists.append(filled)

    def _learn_list(self, filled: FilledList, traced: Round, mark: int) -> bool:
        if id(filled) not in traced.rows:
            return False
        held = filled.after(traced, self._slots)
        if held is None:
            self._cannot_grow(filled)
            return False
        if filled.appended(held, traced, lambda size: self._is_inner(size, mark)) is not None:
            return False
        try:
            shape = filled.shape_with(held, lambda size: self._is_inner(size, mark))
            if not shape.same_as(filled.shape):
                filled.carry(shape)
                return True
            with inside(self._tracer, traced.region):
                filled.end = held.rows(filled.shape).tensors
        except NotAlike:
            self._cannot_grow(filled)
        return self._learn_slot(filled.slot, filled.end, traced, mark)

    def _settle_lists(
        self, traced: Round, trips: Any, mark: int, inits: list[Any], outputs: list[Any], results: list[Any]
    ) -> list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]]:
        """The tensors that hold each list after the loop, a set for each item that a round appends; None if it stays.

        Lists that rounds only append to are scanned outputs, which come last.
        """
        settled: list[tuple[FilledList, list[tuple[torch.Tensor, ...]] | None]] = []
        scanned: list[tuple[FilledList, list[Any]]] = []
        for filled in self._lists:
            held = filled.after(traced, self._slots)
            assert held is not None
            items = filled.appended(held, traced, lambda size: self._is_inner(size, mark))
            if items is None:
                settled.append((filled, [self._settle(filled.slot, filled.end, inits, outputs, results)]))
                filled.before = Parts(())
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
        return tuple(made)

    def _cannot_grow(self, filled: FilledList) -> None:
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"this loop changes the length of `{filled.name}`, whose items are of different kinds",
                    place=self._place,
                    label="changes the length of the list",
                    fix="put tensors of one dtype and number of axes into the list",
                )
            ]
        )


def _differ(before: Parts, after: Parts) -> bool:
    """Whether a list has, or may have, another length."""
    return before.items is None or after.items is None or len(before.items) != len(after.items)


def _remember(slot: Slot, leaves: list[Any]) -> None:
    for alike, value in zip(slot.alike, leaves, strict=True):
        if isinstance(value, torch.Tensor):
            alike.append(value)


def _is_carriable(value: Any) -> bool:
    leaves, _ = flatten(value, "value")
    return bool(leaves) and all(leaf.known for leaf in leaves)


def _kind(number: Any) -> Any:
    if isinstance(number, (bool, torch.SymBool)):
        return bool
    return int if isinstance(number, (int, torch.SymInt)) else float


def _order(kind: Any) -> int:
    return [bool, int, float].index(kind)
