"""A dict that is given keys which are known only when the model runs: `counts[t] = counts.get(t, 0) + 1`.

Its keys and its values are two lists, which arms and rounds leave with an open number of items like any other. A key
that is there is found by comparing; one that is not is appended to both. The trace finds out that a dict is given such
a key, and starts again with a table where the dict is made.

`defaultdict` and `Counter` in rewritten code: dicts that answer for keys which they do not have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.sequences import OpenSequence, refuse
from trueport.capture.stops.raising import fail
from trueport.capture.values.stores import TracedContainer
from trueport.rewrite.ahead import rewritten
from trueport.rewrite.running.asking import fails_unless
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals.symbolic import is_number, is_traced


class Counting:
    """What a Counter does besides what a dict does. It is a dict of ours, or a table."""

    def add_up(self: Any, other: Any, sign: int = 1) -> None:
        """Items that are counted, or numbers that are added to those that are there."""
        if isinstance(other, (Mapping, Table)):
            self._add_each(_entries(other), sign)
        else:
            self._count(other, sign)

    @rewritten
    def _add_each(self: Any, entries: Iterable[tuple[Any, Any]], sign: int) -> None:
        for key, value in entries:
            self[key] += sign * value

    @rewritten
    def _count(self: Any, items: Iterable[Any], sign: int) -> None:
        for item in items:
            self[item] += sign

    def subtract(self, *others: Any, **named: Any) -> None:
        for other in (*others, named):
            self.add_up(other, -1)

    @rewritten
    def most_common(self: Any, count: int | None = None) -> Any:
        ordered = sorted(self.items(), key=lambda entry: entry[1], reverse=True)
        return ordered if count is None else ordered[:count]

    @rewritten
    def total(self: Any) -> Any:
        return sum(self.values())


class Table(Counting, TracedContainer):
    """What a dict, a Counter or a defaultdict is then."""

    stands_for: type = dict
    is_open = True
    holds_state = True
    """Branches and rounds of loops change what it holds."""
    is_one_leaf = True

    def __init__(self, entries: Mapping[Any, Any], stands_for: type, missing: Callable[[], Any] | None) -> None:
        """`missing` makes what a key that is not there is answered with."""
        self.stands_for, self._missing = stands_for, missing
        self._keys, self._values = TracedList(entries.keys()), TracedList(entries.values())

    @property
    def length(self) -> Any:
        return self._keys.length

    def holds(self, key: Any) -> Any:
        """Whether a key is there: a plain bool, or a symbol for one."""
        self._must_be_number(key)
        if self._keys.is_open:
            return (self._keys.whole() == key).any().item()
        return RUNTIME_FUNCTIONS.in_(key, [*self._keys])

    def _must_be_number(self, key: Any) -> None:
        keys = () if self._keys.is_open else tuple(self._keys)
        if not all(map(is_number, (key, *keys))):
            refuse(
                "a dict is given keys that are known only when the model runs, and others that are no numbers",
                "use one dict for the numbers, and another one for the rest",
            )

    def _place(self, key: Any) -> Any:
        if self._keys.is_open:
            return (self._keys.whole() == key).to(torch.int64).argmax().item()
        return RUNTIME_FUNCTIONS.traced([*self._keys].index)(key)

    def __getitem__(self, key: Any) -> Any:
        if self._missing is not None:
            return self.get(key, self._missing()) if self.stands_for is Counter else self._kept(key, self._missing)
        found = self.holds(key)
        if found is False:
            fail(KeyError)
        fails_unless(lambda: found, KeyError)
        return self._values[self._place(key)]

    @rewritten
    def _kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is there, or what is made for it, and is there from now on."""
        if not self.holds(key):
            self._add(key, make())
        return self._values[self._place(key)]

    @rewritten
    def __setitem__(self, key: Any, value: Any) -> None:
        if self.holds(key):
            self._values[self._place(key)] = value
        else:
            self._add(key, value)

    @rewritten
    def get(self, key: Any, default: Any = None) -> Any:
        return self._values[self._place(key)] if self.holds(key) else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self._kept(key, lambda: default)

    def update(self, *others: Any, **named: Any) -> None:
        for other in (*others, named):
            if self.stands_for is Counter:
                self.add_up(other)
            else:
                self._put_each(_entries(other))

    @rewritten
    def _put_each(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self[key] = value

    def _add(self, key: Any, value: Any) -> None:
        if isinstance(value, (list, dict, set)):
            refuse(
                "a dict is given lists under keys that are known only when the model runs",
                "keep tensors under the keys: sums[k] = sums.get(k, 0) + y; or work on whole tensors:"
                " torch.zeros(n, d).index_add_(0, keys, values)",
            )
        self._keys.append(key)
        self._values.append(value)

    def keys(self) -> TracedList:
        return self._keys.copy()

    def values(self) -> TracedList:
        return self._values.copy()

    def items(self) -> Any:
        return RUNTIME_FUNCTIONS.traced(zip)(self._keys.copy(), self._values.copy())

    def copy(self) -> Table:
        made = Table({}, self.stands_for, self._missing)
        made._keys, made._values = self.keys(), self.values()
        return made

    def clear(self) -> None:
        self._keys.hold(ListParts.plain(()))
        self._values.hold(ListParts.plain(()))

    def sequence(self) -> OpenSequence | None:
        return self._keys.sequence()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        found = self.holds(key)
        return bool(refuse("whether a dict has a key is open", "ask with `if`") if is_traced(found) else found)


def _entries(given: Any) -> Any:
    """Of what a dict is made: also of a table, as `{0: 1}` in `Counter({0: 1})` is one where the Counter is."""
    return given.items() if isinstance(given, Table) else dict(given).items()


class MakingDict(TracedDict, Counting):
    """One that makes what it is asked for."""

    def __init__(self, missing: Callable[[], Any], stands_for: type) -> None:
        super().__init__()
        self.missing, self.stands_for = missing, stands_for

    def empty(self) -> MakingDict:
        return MakingDict(self.missing, self.stands_for)

    def __getitem__(self, key: Any) -> Any:
        there = self.presence(key)
        if there is True:
            return dict.__getitem__(self, key)
        value = self.missing() if there is False else self.get(key, self.missing())
        if self.stands_for is defaultdict:
            self[key] = value
        return value

    def update(self, *args: Any, **kwargs: Any) -> None:
        """A Counter adds what it is given, or counts it."""
        if self.stands_for is not Counter:
            super().update(*args, **kwargs)
            return
        for other in (*args, kwargs):
            self.add_up(other)
