"""A dict that is given keys which are known only when the model runs: `counts[t] = counts.get(t, 0) + 1`.

Its keys and its values are two lists, which arms and rounds leave with an open number of items like any other. A key
that is there is found by comparing; one that is not is appended to both. The trace finds out that a dict is given such
a key, and starts again with a table where the dict is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.sequences import OpenSequence, refuse
from trueport.capture.stops.raising import fail
from trueport.capture.values.chosen import later
from trueport.capture.values.stores import TracedContainer
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import NO_NAMES, RUNTIME_FUNCTIONS, TRACE

_NOTHING = object()
_NUMBERS = (bool, int, float, *Symbolic)


class Table(TracedContainer):
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
        return RUNTIME_FUNCTIONS.or_(False, *[later(RUNTIME_FUNCTIONS.eq, key, each) for each in self._keys])

    def _must_be_number(self, key: Any) -> None:
        keys = () if self._keys.is_open else tuple(self._keys)
        if not all(isinstance(each, _NUMBERS) for each in (key, *keys)):
            refuse(
                "a dict is given keys that are known only when the model runs, and others that are no numbers",
                "use one dict for the numbers, and another one for the rest",
            )

    def _place(self, key: Any) -> Any:
        if self._keys.is_open:
            return (self._keys.whole() == key).to(torch.int64).argmax().item()
        return RUNTIME_FUNCTIONS.traced([*self._keys].index)(key)

    def __getitem__(self, key: Any) -> Any:
        found = self.holds(key)
        if self._missing is not None:
            return self._or_made(key, found, self._missing)
        if found is False:
            fail(KeyError)
        if TRACE.trace is not None:
            TRACE.trace.check_if_caught(lambda: found, KeyError)
        return self._values[self._place(key)]

    def _or_made(self, key: Any, found: Any, make: Callable[[], Any]) -> Any:
        """What is there, or what is made for it: a defaultdict keeps that, a Counter does not."""
        if self.stands_for.__name__ != "Counter":
            keys, values = self._keys, self._values
            RUNTIME_FUNCTIONS.if_(found, _nothing, lambda: _add(keys, values, key, make()), NO_NAMES)
            return self._values[self._place(key)]
        return self.get(key, make())

    def __setitem__(self, key: Any, value: Any) -> None:
        keys, values = self._keys, self._values

        def replace() -> None:
            values[self._place(key)] = value

        RUNTIME_FUNCTIONS.if_(self.holds(key), replace, lambda: _add(keys, values, key, value), NO_NAMES)

    def get(self, key: Any, default: Any = None) -> Any:
        found = self.holds(key)
        if found is False:
            return default
        return RUNTIME_FUNCTIONS.ternary(found, lambda: self._values[self._place(key)], lambda: default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        keys, values = self._keys, self._values
        RUNTIME_FUNCTIONS.if_(self.holds(key), _nothing, lambda: _add(keys, values, key, default), NO_NAMES)
        return self._values[self._place(key)]

    def update(self, *others: Any, **named: Any) -> None:
        for other in (*others, named):
            counted = self.stands_for.__name__ == "Counter"
            if counted and not isinstance(other, Mapping):
                self._count(other)
                continue
            for key, value in dict(other).items():
                self[key] = self[key] + value if counted else value

    def _count(self, items: Iterable[Any]) -> None:
        RUNTIME_FUNCTIONS.for_(items, lambda item: self._count_one(item), lambda: False, NO_NAMES)

    def _count_one(self, item: Any) -> None:
        self[item] = self[item] + 1

    def most_common(self, count: int | None = None) -> Any:
        ordered = RUNTIME_FUNCTIONS.traced(sorted)(self.items(), key=lambda entry: entry[1], reverse=True)
        return ordered if count is None else ordered[:count]

    def total(self) -> Any:
        return RUNTIME_FUNCTIONS.traced(sum)(self._values)

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
        return found if isinstance(found, bool) else bool(refuse("whether a dict has a key is open", "ask with `if`"))


def _add(keys: TracedList, values: TracedList, key: Any, value: Any) -> None:
    if isinstance(value, (list, dict, set)):
        refuse(
            "a dict is given lists under keys that are known only when the model runs",
            "keep tensors under the keys: sums[k] = sums.get(k, 0) + y; or work on whole tensors:"
            " torch.zeros(n, d).index_add_(0, keys, values)",
        )
    keys.append(key)
    values.append(value)


def _nothing(*_: Any) -> None:
    return None
