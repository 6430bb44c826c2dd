"""Containers of Python: how what one holds is read, put back, compared and joined. One class is one kind of container.

Arms of a branch and rounds of a loop change lists, dicts and objects. What each did is seen, undone, and joined with
what the others did. Whoever does that asks `store_of`, and never which kind of container it is. The kinds of plain
Python are here; those of rewritten code stand beside their own classes (containers/lists.py, dicts.py, sets.py).
"""

from __future__ import annotations

import sys
from collections import ChainMap, UserDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import CellType
from typing import Any, Protocol, Self, TypeAlias

import torch

from trueport.capture import limits
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import ANOTHER, ONE, Kind, Length
from trueport.load.values import OPEN_NAMESPACES, SYMBOLIC_NUMBERS, attributes_of
from trueport.rewrite.running.runtime import UNBOUND
from trueport.source import Place

_OF_THE_LIBRARY = (UserDict, ChainMap, ExitStack)
"""Objects of the standard library that hold what the user puts into them."""
FOREIGN = ("torch", "builtins", "types", "trueport")


class TracedContainer:
    """A container of rewritten code, in the place of one of Python's. What is in an open one, traced values decide."""

    stands_for: type
    """What the user made it as."""

    @property
    def is_open(self) -> bool:
        return False

    @property
    def length(self) -> Any:
        """A plain number, or a symbol for one."""
        return len(self)  # type: ignore[arg-type]

    def empty(self) -> Any:
        """Another of its kind, with nothing in it."""
        return type(self)()

    def holding(self, content: Any) -> Self:
        """Another of its kind that holds this."""
        made: Any = self.empty()
        made.hold(content)
        own: Self = made
        return own

    def holds(self, item: Any) -> Any:
        """Whether something is in an open one: a plain bool, or a symbol for one. None where Python can tell."""
        return None

    def sequence(self) -> Any:
        """The items of an open one, to be gone through by a loop; None where Python can do that."""
        return None


class Meeting(Protocol):
    """Where two ways meet that left a container with different contents: after a branch, or between two rounds."""

    @property
    def place(self) -> Place: ...

    def disagreement(self, name: str, then: Kind = ONE, orelse: Kind = ANOTHER) -> Disagreement: ...

    def ask_makers(self, change: ContainerChange) -> None:
        """Start again with the function rewritten that made the container, unless that was done: there, it may be left
        open which items it has."""

    def set_on_one_way(self, change: ContainerChange, names: Iterable[Any], why: Disagreement) -> None:
        """Attributes are there on one way only: whoever asks `hasattr` has to hear of it."""

    def other_length(self, change: ContainerChange) -> None:
        """A list that no rewritten code made has another length on the other way."""


class Join(Meeting, Protocol):
    """The join of two arms."""

    def merge(self, then: Any, orelse: Any, name: str) -> Any: ...

    def merged_parts(self, then: Any, orelse: Any, name: str) -> Any:
        """Of what two lists hold whose length may be open."""

    def is_caught(self, *errors: str) -> bool:
        """Whether the user's function has an `except` for one of these."""


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """A container that an arm or a round changed: itself, and its content before and after."""

    container: Any
    store: Store
    before: Any
    after: Any
    owner: Any = None
    """The object of which it is an attribute, if it is one."""

    @property
    def name(self) -> str:
        """What the user calls it, as far as that can be told."""
        if isinstance(self.owner, ExitStack):
            return "what an ExitStack does at its end"
        held = getattr(self.owner, "__dict__", {}).items()
        name = next((name for name, value in held if value is self.container), None)
        kind = type(self.container)
        return f"a {getattr(kind, 'stands_for', kind).__name__}" if name is None else f"`{name}`"

    @property
    def parts(self) -> tuple[Any, ...]:
        """What it holds after the change."""
        return tuple(self.store.parts(self.after))

    def put(self) -> None:
        self.store.hold(self.container, self.after)


class Store:
    """One kind of container. Its `content` is all that it holds, as something that later changes do not reach."""

    can_change = True
    is_structure = True
    """Whether a value that has one in it holds what is in there; otherwise it is only looked after where it is."""

    def content(self, container: Any) -> Any:
        raise NotImplementedError

    def hold(self, container: Any, content: Any) -> None:
        """Make it hold exactly this."""
        raise NotImplementedError

    def same(self, container: Any, content: Any) -> bool:
        """Whether it holds exactly this."""
        raise NotImplementedError

    def parts(self, content: Any) -> Iterable[Any]:
        """The things in it."""
        return tuple(content)

    def mapped(self, content: Any, function: Callable[[Any], Any]) -> Any:
        """The same with other parts; itself where parts of such a container are joined one by one anyway."""
        return content

    def another(self, container: Any, content: Any) -> Any:
        """One of the same kind that holds this; itself where there is no telling how to make one."""
        return container

    def followed(self, container: Any, plain: Any) -> Any:
        """What a loop built of a container's leaves, in the kind that the container was."""
        return plain

    def apart(self, content: Any, is_written: Callable[[torch.Tensor], bool]) -> Any:
        """With copies of those tensors that somebody writes who shares them, where their values are held."""
        return content

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        """What it holds after a branch that left it with one or the other."""
        raise NotImplementedError

    # --- what a loop carries of it

    def changed(self, loop: Meeting, change: ContainerChange) -> list[Any] | None:
        """The entries that a round changed; None where it is carried as a whole."""
        return None

    def entry(self, content: Any, key: Any) -> Any:
        """One entry, or all of it."""
        return content

    def put(self, container: Any, key: Any, value: Any) -> None:
        self.hold(container, value)

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        """What it holds when it is out of date: whoever looks is told why."""
        return why.complain()

    def why_spoiled(self, content: Any) -> Disagreement | None:
        """Why it is out of date if it holds this. What is carried entry by entry is so, entry by entry."""
        return None


_STORES: dict[type, Store] = {}


def store_for(kind: type) -> Callable[[type[Store]], type[Store]]:
    """Registers the store of a class, and of what inherits from it."""

    def register(store: type[Store]) -> type[Store]:
        _STORES[kind] = store()
        return store

    return register


def store_of(value: Any) -> Store | None:
    """How to read and change what a value holds; None for what is no container."""
    for cls in type(value).__mro__:
        if (found := _STORES.get(cls)) is not None:
            return found
    return _SLOTS if _keeps_in_slots(value) else None


def fill(container: Any, content: Any) -> None:
    """Make a container hold exactly this."""
    store = store_of(container)
    assert store is not None
    store.hold(container, content)


def parts_of(value: Any) -> Iterable[Any]:
    """The parts of a structure; none where it is no container, or an object."""
    store = store_of(value)
    return store.parts(store.content(value)) if store is not None and store.is_structure else ()


def walk(
    value: Any, depth: int = sys.maxsize, parts: Callable[[Any], Iterable[Any]] = parts_of, around: tuple[Any, ...] = ()
) -> Iterator[Any]:
    """A value, and everything in it, once for each way that leads there. Containers may hold each other."""
    yield value
    if depth > 0 and not any(value is outer for outer in around):
        for part in parts(value):
            yield from walk(part, depth - 1, parts, (*around, value))


def held_disagreement(value: Any) -> Disagreement | None:
    """The first thing in a structure that two arms did not agree on."""
    held = walk(value, int(limits.DEPTH_OF_DISAGREEMENT))
    return next((each for each in held if isinstance(each, Disagreement)), None)


Contents: TypeAlias = Mapping[int, Any]
"""By id of a container: what an arm left in it. The containers are alive as long as the changes are."""


def contents_after(changes: Iterable[ContainerChange]) -> Contents:
    return {id(change.container): change.after for change in changes}


def as_left(value: Any, contents: Contents) -> Any:
    """A value as an arm left it, although what it put into containers was undone: a copy where that differs.

    if c: out.append(a)         one arm has `out` itself, longer, and the other a list of its own
    else: out = [b]
    """
    store = store_of(value) if contents else None
    if store is None or not store.is_structure:
        return value
    changed = id(value) in contents
    now = contents[id(value)] if changed else store.content(value)
    left = store.mapped(now, lambda part: as_left(part, contents))
    same = not changed and (left is now or store.same(value, left))
    return value if same else store.another(value, left)


# --- the kinds of plain Python


class PlainStore(Store):
    """A container that no rewritten code made: it has as many items on all ways, under the same keys."""

    kind: type
    fill: str

    def content(self, container: Any) -> Any:
        return self.kind(container)

    def hold(self, container: Any, content: Any) -> None:
        container.clear()
        getattr(container, self.fill)(content)

    def same(self, container: Any, content: Any) -> bool:
        return len(container) == len(content) and all(a is b for a, b in zip(container, content, strict=True))

    def mapped(self, content: Any, function: Callable[[Any], Any]) -> Any:
        return self.kind(map(function, content))

    def another(self, container: Any, content: Any) -> Any:
        return self.kind(content) if type(container) is self.kind else container


@store_for(tuple)
class TupleStore(PlainStore):
    """Nothing that anybody changes; but what is in it may be changed."""

    kind = tuple
    can_change = False


@store_for(list)
class ListStore(PlainStore):
    kind: type = list
    fill = "extend"

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        if len(then) == len(orelse):
            return [join.merge(a, b, f"item {i}") for i, (a, b) in enumerate(zip(then, orelse, strict=True))]
        join.other_length(change)
        return [join.disagreement(change.name, Length(len(then)), Length(len(orelse)))]

    def changed(self, loop: Meeting, change: ContainerChange) -> list[Any] | None:
        if len(change.before) != len(change.after):
            loop.other_length(change)
        return None

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        return [why for _ in container] if container else why.complain()

    def why_spoiled(self, content: Any) -> Disagreement | None:
        return first_out_of_date(content)


def first_out_of_date(items: Iterable[Any]) -> Disagreement | None:
    return next((item for item in items if isinstance(item, Disagreement) and item.is_out_of_date), None)


@store_for(deque)
class DequeStore(ListStore):
    kind = deque


@store_for(set)
class SetStore(PlainStore):
    kind, fill = set, "update"

    def same(self, container: Any, content: Any) -> bool:
        return bool(container == content)

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        return then if then == orelse else join.disagreement("a set").complain()


@store_for(dict)
class DictStore(PlainStore):
    kind, fill = dict, "update"

    def same(self, container: Any, content: Any) -> bool:
        now = self.content(container)
        return list(now) == list(content) and all(now[key] is content[key] for key in now)

    def parts(self, content: Any) -> Iterable[Any]:
        return tuple(content.values())

    def mapped(self, content: Any, function: Callable[[Any], Any]) -> Any:
        return {key: function(part) for key, part in content.items()}

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        keys = {**then, **orelse}
        unsure = self._unsure(join, then, orelse, change)
        then, orelse = {**then, **unsure}, {**orelse, **unsure}
        return {k: join.merge(then.get(k, UNBOUND), orelse.get(k, UNBOUND), str(k)) for k in keys}

    def _unsure(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> dict[Any, Disagreement]:
        """The keys about which nobody may ask, and why. A key made of free sizes is harmless until it is asked for."""
        missing = then.keys() ^ orelse.keys()
        if missing and all(getattr(key, "may_be_missing", False) for key in missing):
            return dict.fromkeys(missing, keys_differ(join))
        self._agree(join, then, orelse, change)
        return {}

    def _agree(self, meeting: Meeting, one: Any, other: Any, change: ContainerChange) -> None:
        if list(one) != list(other):
            meeting.ask_makers(change)
            keys_differ(meeting).complain()

    def changed(self, loop: Meeting, change: ContainerChange) -> list[Any] | None:
        before, after = change.before, change.after
        self._agree(loop, before, after, change)
        return [k for k in {**before, **after} if before.get(k, UNBOUND) is not after.get(k, UNBOUND)]

    def entry(self, content: Any, key: Any) -> Any:
        return content.get(key, UNBOUND)

    def put(self, container: Any, key: Any, value: Any) -> None:
        if value is UNBOUND:
            container.pop(key, None)
        else:
            container[key] = value

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        return dict.fromkeys(self.content(container), why)


def keys_differ(meeting: Meeting, what: str = "which keys are there, or their order") -> Disagreement:
    return meeting.disagreement(what)


_WHICH = "which attributes are there"


class AttributesStore(DictStore):
    """The dict in which an object keeps its attributes. One may be there on one way only; their order is no matter."""

    def _unsure(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> dict[Any, Disagreement]:
        missing = then.keys() ^ orelse.keys()
        self._agree(join, then, orelse, change)
        caught = missing and join.is_caught("AttributeError")
        return dict.fromkeys(missing, keys_differ(join, _WHICH)) if caught else {}

    def _agree(self, meeting: Meeting, one: Any, other: Any, change: ContainerChange) -> None:
        missing = one.keys() ^ other.keys()
        if missing:
            meeting.set_on_one_way(change, missing, keys_differ(meeting, _WHICH))


ATTRIBUTES = AttributesStore()


class SlotsStore(AttributesStore):
    """An object of the user's without a dict of attributes."""

    is_structure = False
    setter: Callable[[Any, str, Any], None] = staticmethod(object.__setattr__)

    def content(self, container: Any) -> Any:
        return attributes_of(container) or {}

    def hold(self, container: Any, content: Any) -> None:
        held = self.content(container)
        for name in {**held, **content}:
            if held.get(name, UNBOUND) is not content.get(name, UNBOUND):
                self.put(container, name, content.get(name, UNBOUND))

    def put(self, container: Any, key: Any, value: Any) -> None:
        if value is not UNBOUND:
            self.setter(container, key, value)
        elif key in self.content(container):
            delattr(container, key)


_SLOTS = SlotsStore()
_DATA = (bool, int, float, str, type(None), torch.Tensor, list, dict, set, tuple, *SYMBOLIC_NUMBERS, Disagreement)


@store_for(type)
class ClassStore(SlotsStore):
    """What a class of the user's keeps for all its objects: `Net.calls += 1`. No methods, nor what Python put there."""

    setter = staticmethod(type.__setattr__)

    def content(self, container: Any) -> Any:
        return {name: v for name, v in vars(container).items() if isinstance(v, _DATA) and not name.startswith("__")}


@store_for(CellType)
class CellStore(Store):
    """A name of the function around it, which an inner one declares nonlocal."""

    is_structure = False

    def content(self, container: Any) -> Any:
        try:
            return container.cell_contents
        except ValueError:
            return UNBOUND

    def hold(self, container: Any, content: Any) -> None:
        if content is UNBOUND:
            del container.cell_contents
        else:
            container.cell_contents = content

    def same(self, container: Any, content: Any) -> bool:
        return self.content(container) is content

    def parts(self, content: Any) -> Iterable[Any]:
        return (content,)

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        return join.merge(then, orelse, "a name of the function around it")


CLASS, CELL = _STORES[type], _STORES[CellType]


class TracedStore(Store):
    """A container of rewritten code. It has `held`, `hold(content)` and `holding(content)`, which makes another."""

    def content(self, container: Any) -> Any:
        return container.held

    def hold(self, container: Any, content: Any) -> None:
        container.hold(content)

    def another(self, container: Any, content: Any) -> Any:
        return container.holding(content)


# --- which objects are the user's


def is_users_object(value: Any) -> bool:
    """Whether it is an object of the user's, or of ours that arms and rounds change, with a dict of attributes."""
    return not _is_foreign(value) and hasattr(value, "__dict__")


def _keeps_in_slots(value: Any) -> bool:
    slots = any("__slots__" in vars(cls) for cls in type(value).__mro__)
    return slots and not _is_foreign(value) and not hasattr(value, "__dict__")


def _is_foreign(value: Any) -> bool:
    room = type(value).__module__.split(".")[0]
    foreign = room in FOREIGN or room in sys.stdlib_module_names
    return foreign and not isinstance(value, (*OPEN_NAMESPACES, *_OF_THE_LIBRARY)) and not holds_state(value)


def holds_state(value: Any) -> bool:
    """Whether it is an object of ours that arms and rounds change."""
    return bool(getattr(type(value), "holds_state", False))
