"""What two arms leave behind, made one: the outputs of an `If`.

Lists that two arms leave with different items: item by item where both have as many, otherwise open from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sympy
import torch

from trueport.capture.containers.dicts import TracedDict, joined_entries
from trueport.capture.containers.lists import ListParts, Part, TracedList, held_in
from trueport.capture.containers.parts import PlainItems
from trueport.capture.containers.rows import NotAlike, Rows, common_shape
from trueport.capture.joins.meeting import Arm, MeetingWays, inside
from trueport.capture.recording.tracer import Tracer
from trueport.capture.stops.raising import is_handled_here
from trueport.capture.values import kinds, maybe
from trueport.capture.values.chosen import Chosen, number_of
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import ONE_LIST, Length, ListKind
from trueport.capture.values.stores import ContainerChange, is_users_object, keys_differ
from trueport.graph.regions import Number, Size, Value, symbols_of
from trueport.load.containers import kind_of_container
from trueport.load.structures import flatten
from trueport.load.trees import container_of
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place
from trueport.torch_internals.bounds import Equations, equal_where, opposite
from trueport.torch_internals.symbolic import plain_number, statement_of


def _share_an_object(one: Any, other: Any) -> bool:
    """Whether something that can change is at the same place in both."""
    container = container_of(one)
    if one is other:
        return container is not None or is_users_object(one)
    if container is None or container != container_of(other):
        return False
    return any(map(_share_an_object, container.open(one), container.open(other)))


@dataclass
class Merging(MeetingWays):
    """Collects the outputs of one `If`, and makes the values that stand for them afterwards."""

    tracer: Tracer
    place: Place
    mark: int
    """The point in the trace at which the branch began."""
    then: Arm
    orelse: Arm
    again: Callable[[], None] | None = None
    """Asks for the rest of the block to be traced inside the arms."""
    test: Any = None
    """What decides: a tensor or a SymBool."""
    is_test: bool = False
    """Whether it is a test that is merged, `a and b`, which nobody can write in place."""
    then_outputs: list[Any] = field(default_factory=list)
    else_outputs: list[Any] = field(default_factory=list)
    results: list[Value | Number] = field(default_factory=list)
    _made: dict[tuple[int, int], Any] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)
    _truth: Any = None

    def __post_init__(self) -> None:
        self._around = self.tracer.regions[-1]

    def merge(self, then: Any, orelse: Any, name: str) -> Any:
        """The value after the branch of something that is `then` in one arm and `orelse` in the other."""
        if then is orelse:
            return then
        key = (id(then), id(orelse))
        if key not in self._made:
            self._alive += (then, orelse)
            one, other = self.then.left(then), self.orelse.left(orelse)
            self._alive += (one, other)
            self._made[key] = self._merge(one, other, name)
        return self._made[key]

    def _merge(self, then: Any, orelse: Any, name: str) -> Any:
        unbound = then is UNBOUND or orelse is UNBOUND
        is_inner = partial(self.is_no_size_elsewhere if unbound else self.is_inner, mark=self.mark)
        both = self.kind_of(then, self.then.values, is_inner), self.kind_of(orelse, self.orelse.values, is_inner)
        if unbound and not name.startswith("tp_") and self.is_caught("NameError", "UnboundLocalError"):
            return Disagreement(f"`{name}`", *both, self.place)
        match kinds.join(*both):
            case kinds.NumberKind() as kind:
                return self._number(kind, then, orelse)
            case kinds.TensorKind() as kind:
                return self._tensor(self._with_sizes(kind, *both), then, orelse)
            case kinds.Optional():
                return self._maybe(then, orelse, name)
            case kinds.Choice() as kind:
                return self._chosen(kind, then, orelse, lambda: self._disagreement(name, *both))
            case kinds.ListKind() as kind:
                return self._merged_list(kind, then, orelse, name)
            case kinds.DictKind() as kind if not unbound or kind.count is None:
                return self._dicts(then, orelse)
            case kinds.Record(structure=None):
                return self._merged_parts_of(then, orelse, name)
            case kinds.Record() | kinds.DictKind():
                return self._leaf_by_leaf(then, orelse, name)
            case kinds.Conflict():
                return self._conflict(then, orelse, name, *both)
            case _:
                return orelse if then is UNBOUND else then

    def _conflict(self, then: Any, orelse: Any, name: str, *both: kinds.Kind) -> Disagreement:
        """What an arm already had is kept."""
        for side, kind in zip((then, orelse), both, strict=True):
            if kind.is_conflict:
                return side  # type: ignore[no-any-return]
        return self._disagreement(name, *both)

    def _maybe(self, then: Any, orelse: Any, name: str) -> Any:
        """None on one side: a flag that tells, and what it is otherwise."""
        one, other = (side if side is UNBOUND else maybe.flag_of(side) for side in (then, orelse))
        flag = self.merge(one, other, name)
        one, other = (UNBOUND if side is None else maybe.value_of(side) for side in (then, orelse))
        value = self.merge(one, other, name)
        if flag is True or isinstance(value, Disagreement):
            return value
        shown = f"`{name}`" if name.isidentifier() else name
        return maybe.Maybe(flag, value, shown, self.place, self.again)

    def _chosen(self, kind: kinds.Choice, then: Any, orelse: Any, like: Callable[[], Disagreement]) -> Any:
        """Things that no value can be: a number that tells which."""
        if len(kind.things) == 1:
            return kind.things[0]
        one, other = (number_of(kind.things[0] if side is UNBOUND else side) for side in (then, orelse))
        return Chosen.by_number(self.merge(one, other, "which one it is"), kind.things, like())

    # --- numbers

    def _number(self, kind: kinds.NumberKind, then: Any, orelse: Any) -> Any:
        if kind.held is not None:
            return orelse if then is UNBOUND else then
        if type(then) is bool and type(orelse) is bool and self.test is not None:
            return self._decided(then)
        return self._output(kind, then, orelse)

    def _decided(self, then: bool) -> Any:
        """True in one arm and False in the other: the test itself, or that it fails. No arm has to yield it."""
        if self._truth is None:
            elsewhere = self.tracer.regions[-1] is not self._around
            with inside(self.tracer, self._around) if elsewhere else nullcontext():
                self._truth = plain_number(self.test)
        return self._truth if then else torch.sym_not(self._truth)

    # --- tensors

    def _with_sizes(self, kind: kinds.TensorKind, then: kinds.Kind, orelse: kinds.Kind) -> kinds.TensorKind:
        """Sizes that differ, and are the same for all that: `if x.shape[0] != 8: x = resized(x, 8)`."""
        said = None if None not in kind.sizes else statement_of(self.test)
        if said is None or not isinstance(then, kinds.TensorKind) or not isinstance(orelse, kinds.TensorKind):
            return kind
        one, other = equal_where(said), equal_where(opposite(said))
        sides = zip(kind.sizes, then.sizes, orelse.sizes, strict=True)
        sizes = (known if known is not None else _common(a, b, one, other) for known, a, b in sides)
        return replace(kind, sizes=tuple(sizes))

    def _tensor(self, kind: kinds.TensorKind, then: Any, orelse: Any) -> Any:
        if kind.held is not None:
            return then
        result = self._output(kind, then, orelse)
        if not self.is_test:  # it is one of these very tensors, which matters when somebody writes to it in place
            sides = [side for side in (then, orelse) if isinstance(side, torch.Tensor)]
            self.tracer.link(result, sides, self.again)
        return result

    # --- structures

    def _dicts(self, then: Any, orelse: Any) -> TracedDict:
        sides = [side for side in (then, orelse) if side is not UNBOUND]
        like = sides[0] if kind_of_container(sides[0]) is kind_of_container(sides[-1]) else TracedDict()
        held = ({} if side is UNBOUND else side.held for side in (then, orelse))
        return like.holding(joined_entries(self, *held), keys_differ(self))

    def _leaf_by_leaf(self, then: Any, orelse: Any, name: str) -> Any:
        """Of the structure that the first has; where only one side is bound, the other is nothing, leaf by leaf.

        An object that both sides hold stays that object, in `return y, cache` as well: what the arms changed of it is
        undone by now, and merged in its own place.
        """
        if _share_an_object(then, orelse):
            return self._merged_parts_of(then, orelse, name)
        found, structure = flatten(orelse if then is UNBOUND else then, name)
        unbound = [UNBOUND for _ in found]
        sides = (unbound if side is UNBOUND else [leaf.value for leaf in flatten(side)[0]] for side in (then, orelse))
        merged = [self.merge(a, b, leaf.path) for leaf, a, b in zip(found, *sides, strict=True)]
        return structure.build(merged)

    def _merged_parts_of(self, then: Any, orelse: Any, name: str) -> Any:
        """Containers in which there are lists of open length, part by part."""
        found = [container_of(side) for side in (then, orelse) if side is not UNBOUND]
        if found[0] is None or found[0] != found[-1]:
            return self.disagreement(name, *map(self.kind_of, (then, orelse)))
        steps = found[0].steps()
        parts = ([UNBOUND for _ in steps] if side is UNBOUND else found[0].open(side) for side in (then, orelse))
        merged = [self.merge(a, b, f"{name}{step.path}") for step, a, b in zip(steps, *parts, strict=True)]
        return found[0].fill(found[0].shell(), merged)

    def _merged_list(self, kind: ListKind, then: Any, orelse: Any, name: str) -> TracedList:
        like: TracedList = next(items for items in (then, orelse) if isinstance(items, TracedList))
        one, other = (_unbound(like.held) if side is UNBOUND else held_in(side) for side in (then, orelse))
        made = like.holding(self.merged_parts(one, other, name))
        made.place = self.place
        made.stands_for = kind.made_as
        if self.was_there(then) or self.was_there(orelse):
            made.one_of_two = self.disagreement(name, ONE_LIST)
        return made

    def merged_parts(self, then: ListParts, orelse: ListParts, name: str) -> ListParts:
        lost = then.lost or orelse.lost
        if lost is not None:
            return ListParts((lost,))
        if then.alike(orelse):
            pairs = zip(then.parts, orelse.parts, strict=True)
            return ListParts(tuple(self._merged_part(one, other, name) for one, other in pairs))
        try:
            then, orelse = self._as_left(then, self.then), self._as_left(orelse, self.orelse)
            shape = common_shape(parts.shape(partial(self.is_inner, mark=self.mark)) for parts in (then, orelse))
            with inside(self.tracer, self.then.region):
                one = then.rows(shape)
            with inside(self.tracer, self.orelse.region):
                other = orelse.rows(shape)
            return ListParts((self._merged_rows(one, other, name),))
        except NotAlike:
            lengths = [Length(None if parts.items is None else len(parts.items)) for parts in (then, orelse)]
            return ListParts.plain([self.disagreement(name, *lengths)])

    def _as_left(self, parts: ListParts, arm: Arm) -> ListParts:
        """The items as an arm left them: it may have written tensors that were in the list before it."""

        def now(item: Any) -> Any:
            leaves, structure = flatten(item, "item")
            left = [
                self.tracer.holding(arm.values[id(value)], value)
                if isinstance(value, torch.Tensor) and id(value) in arm.values
                else value
                for value in (leaf.value for leaf in leaves)
            ]
            return item if all(a is b.value for a, b in zip(left, leaves, strict=True)) else structure.build(left)

        return parts.mapped(now)

    def _merged_part(self, one: Part, other: Part, name: str) -> Part:
        if isinstance(one, Rows) and isinstance(other, Rows):
            return one if one is other else self._merged_rows(one, other, name)
        pairs = zip(one.plain or (), other.plain or (), strict=True)
        return PlainItems(self.merge(a, b, f"item {i} of {name}") for i, (a, b) in enumerate(pairs))

    def _merged_rows(self, one: Rows, other: Rows, name: str) -> Rows:
        pairs = zip(one.read().tensors, other.read().tensors, strict=True)
        return Rows(one.shape, tuple(self.merge(a, b, name) for a, b in pairs))

    def _disagreement(self, name: str, *both: kinds.Kind) -> Disagreement:
        return self.disagreement(f"`{name}`" if name.isidentifier() else name, *both)

    def disagreement(self, name: str, then: kinds.Kind = kinds.ONE, orelse: kinds.Kind = kinds.ANOTHER) -> Disagreement:
        return Disagreement(name, then, orelse, self.place, self.again, self._arguments())

    # --- what a container asks that the arms changed

    def other_length(self, change: ContainerChange) -> None:
        self.ask_makers(change)  # there, its length may be open

    def is_caught(self, *errors: str) -> bool:
        return is_handled_here(set(errors), self.tracer.places)

    def _arguments(self) -> tuple[str, ...]:
        """The Python numbers among the model's arguments that alone decide which arm is taken."""
        known = self.tracer.symbols.number_symbols
        symbols = symbols_of(statement_of(self.test))
        return tuple(sorted(known[s] for s in symbols)) if all(s in known for s in symbols) else ()

    def was_there(self, container: Any) -> bool:
        """Whether a container is older than the branch, so that others may know it."""
        return self.then.was_there(container) or self.orelse.was_there(container)

    def contents(self) -> list[tuple[Any, Any]]:
        """The containers that an arm changed, and what each holds: item by item where both arms left the same items."""
        both = _both(self.then.changes, self.orelse.changes, lambda change: change.container)
        return [(change.container, change.store.joined(self, a, b, change)) for change, a, b in both]

    def written(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The tensors that an arm wrote in place, and their values after the branch."""
        both, value = _both(self.then.writes, self.orelse.writes, lambda write: write.base), self.tracer.value
        return [(w.base, self.yielded(self.kind_of(w.before), value(a), value(b))) for w, a, b in both]

    def _output(self, kind: kinds.Kind, then: Any, orelse: Any) -> Any:
        """What the `If` yields of a name that is this in one arm, and that in the other."""
        noted = self.noted(kind, then, self.then.values), self.noted(kind, orelse, self.orelse.values)
        return self.yielded(kind, *noted)

    def yielded(self, kind: kinds.Kind, then: Any, orelse: Any) -> Any:
        """What stands for a result of the `If`, of what the arms yield."""
        made, result = self.fresh(kind)
        self.then_outputs.append(then)
        self.else_outputs.append(orelse)
        self.results.append(result)
        return made


def _both(then: Sequence[Any], orelse: Sequence[Any], key: Callable[[Any], Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Each change of something that an arm changed, and what both arms left there."""
    one, other = ({id(key(change)): change for change in changes} for changes in (then, orelse))
    for at in {**one, **other}:
        change = one.get(at) or other[at]
        yield change, *(side[at].after if at in side else change.before for side in (one, other))


def _unbound(other: ListParts) -> ListParts:
    """What stands for a list in the arm that does not bind it."""
    return ListParts(()) if other.items is None else ListParts.plain([UNBOUND for _ in other.items])


def _common(then: Size | None, orelse: Size | None, one: Equations, other: Equations) -> Size | None:
    """The size that is both, with what is equal in each arm; None where there is none."""
    if then is None or orelse is None:
        return None
    ways = [{size, sympy.sympify(size).xreplace(equal)} for size, equal in ((then, one), (orelse, other))]
    both = ways[0] & ways[1]
    found = min(both, key=lambda size: len(sympy.sympify(size).free_symbols), default=None)
    return int(found) if found is not None and sympy.sympify(found).is_Integer else found
