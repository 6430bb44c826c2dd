"""Python dicts that a branch or a loop of traced length may leave with a key that is not there on every way.

A dict that rewritten code makes is one of these. It is a dict like any other until two arms leave it with different
keys, or a loop adds one; from then on such a key has a flag that tells whether it is there. Keys that two ways put in
another order are gone through in the one or in the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self, TypeAlias

from trueport.capture.containers.choices import is_traced_key
from trueport.capture.containers.generators import Emit, Generated
from trueport.capture.values.chosen import Chosen, OneOfFew, itself
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import ANOTHER, ONE
from trueport.capture.values.stores import (
    ContainerChange,
    DictStore,
    Join,
    Meeting,
    TracedContainer,
    TracedStore,
    keys_differ,
    store_for,
    walk,
)
from trueport.rewrite.ahead import rewritten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE, UNBOUND
from trueport.source import Place
from trueport.torch_internals.symbolic import is_symbolic

Entries: TypeAlias = dict[Any, Any]
"""What a dict holds: its values, a flag under `Presence(key)` for each key that may be missing, its order if open."""


@dataclass(frozen=True)
class Presence:
    """Whether a key is there."""

    key: Any


class KeyOrder(OneOfFew):
    """Keys in the order in which they are gone through; one object for each order, so that they can be compared."""

    def __init__(self, keys: tuple[Any, ...]) -> None:
        self.keys = keys

    def last(self, key: Any) -> KeyOrder:
        return key_order((*(k for k in self.keys if k != key), key))


@functools.lru_cache(maxsize=4096)
def key_order(keys: tuple[Any, ...]) -> KeyOrder:
    return KeyOrder(keys)


class _Order:
    def __repr__(self) -> str:
        return "the order of its keys"


OPEN_ORDER = _Order()
"""The entry of a dict whose keys have another order on another way."""


def values_in(entries: Mapping[Any, Any]) -> dict[Any, Any]:
    return {k: v for k, v in entries.items() if k is not OPEN_ORDER and not isinstance(k, Presence)}


def presence_in(entries: Mapping[Any, Any], key: Any) -> Any:
    """Whether a key is there: True, False, or a symbol."""
    return entries.get(Presence(key), key in entries)


def order_in(entries: Mapping[Any, Any]) -> Any:
    known = entries.get(OPEN_ORDER)
    return key_order(tuple(values_in(entries))) if known is None else known


def common_order(one: Any, other: Any) -> KeyOrder | None:
    """An order in which the keys of both come as they do in each; None where there is none that is easily found."""
    if not all(isinstance(order, KeyOrder) for order in (one, other)):
        return None
    for first, second in ((one, other), (other, one)):
        both = (*first.keys, *(k for k in second.keys if k not in first.keys))
        if tuple(k for k in both if k in second.keys) == second.keys:
            return key_order(both)
    return None


_OF_NOBODY = Disagreement("a dict", ONE, ANOTHER, Place(()))


class TracedDict(dict, TracedContainer):  # type: ignore[type-arg]
    """A dict of rewritten code."""

    stands_for: type = dict
    site: tuple[str, int] | None = None
    """The file and the line that make it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flags: dict[Any, Any] = {}
        self._order: Any = None
        self.why: Disagreement = _OF_NOBODY
        """What is said where its keys have to be known."""

    @property
    def is_open(self) -> bool:
        return bool(self._flags) or self._order is not None

    def holding(self, content: Entries, why: Disagreement | None = None) -> Self:
        made = super().holding(content)
        made.why = self.why if why is None else why
        return made

    @property
    def held(self) -> Entries:
        flags = {Presence(key): flag for key, flag in self._flags.items()}
        order = {} if self._order is None else {OPEN_ORDER: self._order}
        return {**dict(dict.items(self)), **flags, **order}

    def hold(self, entries: Entries) -> None:
        """Make it hold this."""
        dict.clear(self)
        dict.update(self, values_in(entries))
        self._flags = {}
        for entry, flag in entries.items():
            if isinstance(entry, Presence):
                self._set_flag(entry.key, flag)
        self._order = entries.get(OPEN_ORDER)

    def put(self, entry: Any, value: Any) -> None:
        """One entry, as a round of a loop begins with it, or ends."""
        if entry is OPEN_ORDER:
            self._order = None if isinstance(value, KeyOrder) and value is order_in(dict(self.held)) else value
        elif isinstance(entry, Presence):
            self._set_flag(entry.key, value)
        elif value is UNBOUND:
            dict.pop(self, entry, None)
            self._flags.pop(entry, None)
        else:
            dict.__setitem__(self, entry, value)

    def _set_flag(self, key: Any, flag: Any) -> None:
        """As it is: what an arm knows of a flag holds in that arm only, and what it changed is put back inside it."""
        self._flags.pop(key, None)
        if flag is False:
            dict.pop(self, key, None)
        elif flag is not True:
            self._flags[key] = flag

    def holds(self, item: Any) -> Any:
        return self.presence(item) if self.is_open and not is_traced_key(item) else None

    def presence(self, key: Any) -> Any:
        """Whether a key is there, as far as it is known here: True, False, or a symbol."""
        flag = self._flags.get(key, dict.__contains__(self, key))
        return flag if TRACE.trace is None else TRACE.trace.truth(flag)

    @property
    def length(self) -> Any:
        count: Any = dict.__len__(self) - len(self._flags)
        for flag in self._flags.values():
            count = count + RUNTIME_FUNCTIONS.traced(int)(flag)
        return count

    def _unknown(self) -> NoReturn:
        """Code that cannot ask a flag wants to know its keys."""
        if TRACE.trace is not None:
            TRACE.trace.rewrite_caller()
        self.why.complain()
        raise AssertionError("a disagreement is never silent")

    def going_through(self, made: Callable[[Any], Any]) -> Generated:
        """What is made of each key that is there, one after the other."""
        order = order_in(self.held)

        def run(emit: Emit, stopped: Callable[[], Any]) -> None:
            if isinstance(order, Chosen):
                order.each(lambda chosen: self._in_order(chosen, made).push(emit, stopped))
            elif isinstance(order, KeyOrder):
                self._in_order(order, made).push(emit, stopped)
            else:
                self.why.complain()

        return Generated(run)

    @rewritten
    def _in_order(self, order: KeyOrder, made: Callable[[Any], Any]) -> Any:
        for key in order.keys:
            if self.presence(key):
                yield made(key)

    # --- what Python does with a dict

    def keys(self) -> Any:
        if self.is_open:
            self.why.settle()  # a list of texts can have no open length
        return self.going_through(itself) if self.is_open else dict.keys(self)

    def values(self) -> Any:
        return self.going_through(self._value) if self.is_open else dict.values(self)

    def items(self) -> Any:
        return self.going_through(lambda key: (key, self._value(key))) if self.is_open else dict.items(self)

    def _value(self, key: Any) -> Any:
        return dict.__getitem__(self, key)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __contains__(self, key: object) -> bool:
        known = self.presence(key)
        return self._unknown() if is_symbolic(known) else bool(known)

    def __getitem__(self, key: Any) -> Any:
        if key in self._flags and TRACE.trace is not None:
            TRACE.trace.check(self._flags[key], KeyError)
        return dict.__getitem__(self, key)

    def get(self, key: Any, default: Any = None) -> Any:
        if key not in self._flags:
            return dict.get(self, key, default)
        value = dict.__getitem__(self, key)
        return RUNTIME_FUNCTIONS.ternary(self._flags[key], lambda: value, lambda: default)

    def __setitem__(self, key: Any, value: Any) -> None:
        flag = self._flags.pop(key, None)
        if flag is not None:  # it stays where it is, or comes last
            known = order_in(self.held)
            if isinstance(known, KeyOrder):
                moved = known.last(key)
                self._order = None if moved is known else Chosen([lambda: flag, lambda: True], [known, moved], self.why)
            else:
                self._order = self.why
        elif self._order is not None and not dict.__contains__(self, key):
            self._order = self._changed_order(lambda order: order.last(key))
        dict.__setitem__(self, key, value)

    def _changed_order(self, change: Callable[[KeyOrder], KeyOrder]) -> Any:
        if isinstance(self._order, KeyOrder):
            return change(self._order)
        return self._order.made(change) if isinstance(self._order, Chosen) else self._order

    def __delitem__(self, key: Any) -> None:
        self._flags.pop(key, None)
        dict.__delitem__(self, key)
        if self._order is not None:
            self._order = self._changed_order(lambda order: key_order(tuple(k for k in order.keys if k != key)))

    def pop(self, key: Any, *default: Any) -> Any:
        if not dict.__contains__(self, key):
            return dict.pop(self, key, *default)
        value = self.get(key, *default) if default else self[key]
        del self[key]
        return value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if self.presence(key) is not True:
            self[key] = self.get(key, default)
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for other in (*args, kwargs):
            if isinstance(other, TracedDict):
                for key in order_in(other.held).keys if isinstance(order_in(other.held), KeyOrder) else other:
                    self._take(key, other)
            else:
                for key, value in dict(other).items():
                    self[key] = value

    def _take(self, key: Any, other: TracedDict) -> None:
        """A key of another dict, which may not be there."""
        flag = other.presence(key)
        if flag is True:
            self[key] = other[key]
        elif not dict.__contains__(self, key):
            self[key] = other._value(key)
            self._flags[key], self.why = flag, other.why
        elif self.presence(key) is True:
            dict.__setitem__(self, key, other.get(key, self[key]))
        else:
            other.why.complain()

    def __or__(self, other: Any) -> TracedDict:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> TracedDict:
        self.update(other)
        return self

    def copy(self) -> TracedDict:
        return self.holding(self.held)

    def clear(self) -> None:
        self.hold({})

    def __eq__(self, other: object) -> bool:
        if self.is_open or has_open_keys(other):
            return self is other or self._unknown()
        return dict.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (dict, (dict(self),))


def _knowing_keys(name: str) -> Callable[[TracedDict], Any]:
    plain = getattr(dict, name)
    return lambda self: self._unknown() if self.is_open else plain(self)


for _name in ("__iter__", "__reversed__", "__len__", "popitem"):
    setattr(TracedDict, _name, _knowing_keys(_name))


@store_for(TracedDict)
class TracedDictStore(TracedStore, DictStore):
    def parts(self, content: Any) -> Iterable[Any]:
        return tuple(values_in(content).values())

    def followed(self, container: Any, plain: Any) -> Any:
        return container.holding(dict(plain)) if type(plain) is container.stands_for else plain

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        change.container.why = keys_differ(join)
        return joined_entries(join, then, orelse)

    def changed(self, loop: Meeting, change: ContainerChange) -> list[Any] | None:
        """The values, which keys are there, and their order."""
        before, after = change.before, change.after
        change.container.why = keys_differ(loop)
        values = [k for k in {**before, **after} if before.get(k, UNBOUND) is not after.get(k, UNBOUND)]
        sides = (before, after)
        missing = [k for k in values_in({**before, **after}) if any(presence_in(side, k) is not True for side in sides)]
        ordered = common_order(*map(order_in, sides)) is not None
        return [*values, *map(Presence, missing), *([] if ordered else [OPEN_ORDER])]

    def entry(self, content: Any, key: Any) -> Any:
        """Also where it goes without saying."""
        if isinstance(key, Presence):
            return presence_in(content, key.key)
        return order_in(content) if key is OPEN_ORDER else content.get(key, UNBOUND)

    def put(self, container: Any, key: Any, value: Any) -> None:
        container.put(key, value)

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        return dict.fromkeys(dict.keys(container), why)


def joined_entries(join: Join, then: Entries, orelse: Entries) -> Entries:
    """Key by key; where a key is there in one arm only, a flag tells whether it is there after the branch."""
    one, other = values_in(then), values_in(orelse)
    orders = order_in(then), order_in(orelse)
    order = common_order(*orders)
    keys = order.keys if order is not None else (*one, *(k for k in other if k not in one))
    merged: Entries = {k: join.merge(one.get(k, UNBOUND), other.get(k, UNBOUND), str(k)) for k in keys}
    for key in keys:
        flags = presence_in(then, key), presence_in(orelse, key)
        if any(flag is not True for flag in flags):
            merged[Presence(key)] = join.merge(*flags, f"whether {key!r} is there")
    if order is None:
        merged[OPEN_ORDER] = join.merge(*orders, repr(OPEN_ORDER))
    return merged


def first_open_dict(value: Any) -> TracedDict | None:
    """A dict in a structure of which not all ways agree on the keys."""
    return next(filter(has_open_keys, walk(value)), None)


def has_open_keys(value: Any) -> bool:
    return isinstance(value, TracedDict) and value.is_open
