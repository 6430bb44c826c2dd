"""Loops of traced length as `Loop` regions.

What a round of the loop changes is found by tracing one: at first everything is taken to stay as it is; what turns out
to change is carried from round to round, a size that changes is left open, and the body is traced again until nothing
new turns up. Everything that the body reads and does not change is simply a value of the scope around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.graph import Control, Node, Number, Region, Returns, Value
from trueport.capture.last_values import LastValues, last_values
from trueport.capture.merging import Disagreement, Symbolic, describe
from trueport.capture.sequences import GrownList
from trueport.capture.world import Change, World, fill
from trueport.capture.writes import Write
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.load.structures import Structure, flatten
from trueport.rewrite.runtime import UNBOUND, State
from trueport.source import Place

if TYPE_CHECKING:
    from trueport.capture.control_flow import ControlFlow

_MOST_ATTEMPTS = 10
_PLAIN = (bool, int, float)
Step = Callable[[Any], Any]


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
    grows: bool = False
    lost: bool = False


@dataclass
class Content:
    """A part of a container that a round may change: what a dict holds under one key, or all of a list."""

    container: Any
    key: Any
    slot: Slot

    def put(self, value: Any) -> None:
        if not isinstance(self.container, dict):
            fill(self.container, value)
        elif value is UNBOUND:
            self.container.pop(self.key, None)
        else:
            self.container[self.key] = value

    def after(self, changes: tuple[Change, ...]) -> Any:
        """What a round left here."""
        change = next((c for c in changes if c.container is self.container), None)
        if change is None:
            return self.slot.before
        return change.after.get(self.key, UNBOUND) if isinstance(self.container, dict) else change.after


@dataclass
class Round:
    """One traced round."""

    region: Region
    going: Any = True
    params: list[Value | Number] = field(default_factory=list)
    entered: dict[int, list[Any]] = field(default_factory=dict)
    after: tuple[Any, ...] = ()
    changes: tuple[Change, ...] = ()
    writes: tuple[Write, ...] = ()
    iteration: Any = None


@dataclass
class _Rounds:
    """How many rounds there will be (None until somebody needs a size for it), and where the last traced one began."""

    count: Any
    mark: int


class Loops:
    """Traces loops for one trace."""

    def __init__(self, control: ControlFlow) -> None:
        self._control = control
        self._tracer = control.tracer

    def run(self, step: Step, state: State, trips: Any, first: Any, blocks: Sequence[Any]) -> None:
        plan = _Plan(self._control, state, self._tracer.places.here(), blocks)
        for _ in range(_MOST_ATTEMPTS):
            mark = self._tracer.symbols.shapes.mark()
            traced = plan.trace(step)
            if not plan.learn(traced, mark):
                plan.finish(traced, trips, first, mark)
                return
        plan.give_up()


class _Plan:
    """What is known so far about one loop."""

    def __init__(self, control: ControlFlow, state: State, place: Place, blocks: Sequence[Any]) -> None:
        self._control, self._tracer, self._state, self._place = control, control.tracer, state, place
        self._blocks = blocks
        self._before = state.get()
        self._slots = [Slot(name, value) for name, value in zip(state.names, self._before, strict=True)]
        self._contents: dict[tuple[int, Any], Content] = {}
        self._bases: dict[int, tuple[torch.Tensor, Slot]] = {}
        self._values: LastValues = {}

    # --- tracing one round

    def trace(self, step: Step) -> Round:
        tracer = self._tracer
        roots = [self._control._model, *self._before, *self._state.look()]
        world = World(roots, self._blocks, self._state.names)
        with tracer.region() as region, tracer.writes.watched() as writes:
            traced = Round(region)
            traced.iteration = tracer.symbols.shapes.new_data_number(int, low=0)
            traced.params = [Number(traced.iteration.node.expr, int)]
            self._enter(traced)
            going = step(traced.iteration)
            traced.going = going if isinstance(going, bool) else self._control.predicate(going)
            traced.after = self._state.get()
            traced.changes = tuple(world.changes())
            self._values = last_values(tracer, traced.after, [change.after for change in traced.changes])
        traced.writes = tuple(writes)
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

    def _entering(self, slot: Slot, traced: Round) -> Any:
        if slot.lost:
            return Disagreement(f"`{slot.name}`", describe(slot.before), "something else", self._place)
        if slot.grows:
            return GrownList(list(slot.before), None, traced.iteration)
        if slot.leaves is None:
            return slot.before
        originals = slot.structure_leaves
        values = []
        for leaf, original, alike in zip(slot.leaves, originals, slot.alike, strict=True):
            values.append(original if leaf is None else self._parameter(leaf, traced, alike))
        traced.entered[id(slot)] = values
        assert slot.structure is not None
        return slot.structure.build(values)

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
        named = [slot for slot in self._slots if slot.before is change.container]
        if not named and (id(change.container), None) not in self._contents:
            slot = Slot("a container", change.before)
            self._contents[id(change.container), None] = Content(change.container, None, slot)
            return True
        learned = [self._learn_slot(slot, change.after, traced, mark) for slot in named]
        return any(learned)

    def _learn_slot(self, slot: Slot, after: Any, traced: Round, mark: int) -> bool:
        if slot.lost or (after is slot.before and slot.leaves is None and not slot.grows):
            return False
        if slot.grows:
            return False
        if slot.leaves is None:
            return self._begin_carrying(slot, after, mark)
        leaves = self._leaves_like(slot, after)
        if leaves is None:
            slot.lost = True
            return True
        _remember(slot, leaves)
        entered = traced.entered[id(slot)]
        new = False
        for i, (leaf, start, end) in enumerate(zip(slot.leaves, entered, leaves, strict=True)):
            changed = self._learn_leaf(leaf, slot.structure_leaves[i], start, end, mark, slot)
            if changed is not leaf:
                slot.leaves[i], new = changed, True
        return new

    def _begin_carrying(self, slot: Slot, after: Any, mark: int) -> bool:
        """A slot turned out to change."""
        if _is_grown(slot.before, after):
            slot.grows = True
            return True
        model = after if slot.before is UNBOUND else slot.before
        if slot.before is UNBOUND and not _is_carriable(after):
            slot.before = after  # an object that each round makes or looks up: the last one stays
            return True
        found, structure = flatten(model, slot.name)
        slot.structure, slot.structure_leaves = structure, [leaf.value for leaf in found]
        slot.leaves, slot.alike = [None] * len(found), [[] for _ in found]
        ends = self._leaves_like(slot, after)
        if ends is None or any(not leaf.known for leaf in found):
            slot.lost = True
            return True
        _remember(slot, slot.structure_leaves)
        _remember(slot, ends)
        for i, (start, end) in enumerate(zip(slot.structure_leaves, ends, strict=True)):
            begins = UNBOUND if slot.before is UNBOUND else start
            slot.leaves[i] = self._learn_leaf(None, begins, start, end, mark, slot)
        return True

    def _leaves_like(self, slot: Slot, after: Any) -> list[Any] | None:
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

    def give_up(self) -> None:
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
        rounds = _Rounds(trips, mark)
        after = [self._grown(slot, a, rounds, outputs, results) for slot, a in zip(self._slots, after, strict=True)]
        self._append(traced, trips, first, inits, outputs, results)
        self._state.put(tuple(after))
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
        if slot.grows:
            return end
        if slot.lost:
            return Disagreement(f"`{slot.name}`", describe(slot.before), "something else", self._place)
        if slot.leaves is None or slot.structure is None:
            return slot.before
        ends = [end] if isinstance(end, torch.Tensor) else [leaf.value for leaf in flatten(end, slot.name)[0]]
        values = []
        for leaf, original, last, alike in zip(slot.leaves, slot.structure_leaves, ends, slot.alike, strict=True):
            if leaf is None:
                values.append(original if slot.before is not UNBOUND else last)
                continue
            inits.append(self._start(leaf))
            outputs.append(self._noted(last, leaf))
            values.append(self._result(leaf, results, alike))
        return slot.structure.build(values)

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

    def _grown(self, slot: Slot, end: Any, rounds: _Rounds, outputs: list[Any], results: list[Any]) -> Any:
        """A list that each round appends to: what one round appends is an item of a scanned output."""
        if not slot.grows:
            return end
        appended = list(end.tail)
        if len(appended) != 1 or not isinstance(appended[0], torch.Tensor):
            return self._cannot_grow(slot, appended)
        item = appended[0]
        if any(self._is_inner(s, rounds.mark) for s in item.shape):
            return self._cannot_grow(slot, appended)
        if rounds.count is None:
            rounds.count = self._tracer.symbols.shapes.new_data_size()
        outputs.append(self._last(item))
        wrapper = self._tracer.fresh(item.dtype, [rounds.count, *item.shape], item.device)
        results.append(self._tracer.value(wrapper))
        return GrownList(list(slot.before), wrapper, rounds.count)

    def _cannot_grow(self, slot: Slot, appended: list[Any]) -> Any:
        what = "a tensor whose size changes" if len(appended) == 1 else f"{len(appended)} items"
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"each round of this loop appends {what} to the list `{slot.name}`",
                    place=self._place,
                    fix="append one tensor of the same sizes in each round, or concatenate as you go",
                )
            ]
        )


def _remember(slot: Slot, leaves: list[Any]) -> None:
    for alike, value in zip(slot.alike, leaves, strict=True):
        if isinstance(value, torch.Tensor):
            alike.append(value)


def _is_grown(before: Any, after: Any) -> bool:
    return isinstance(before, list) and isinstance(after, list) and len(after) > len(before)


def _is_carriable(value: Any) -> bool:
    leaves, _ = flatten(value, "value")
    return bool(leaves) and all(leaf.known for leaf in leaves)


def _kind(number: Any) -> Any:
    if isinstance(number, (bool, torch.SymBool)):
        return bool
    return int if isinstance(number, (int, torch.SymInt)) else float


def _order(kind: Any) -> int:
    return [bool, int, float].index(kind)
