"""What a running trace offers to rewritten code, and how rewritten code finds it.

The trace is not known here: it registers itself in `TRACE` while it runs, on its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Thunk = Callable[[], Any]


class _Unbound:
    """The value of a name that is not bound."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = _Unbound()


def nothing(*_: Any) -> None:
    """An arm without code, or names that nobody sets."""


@dataclass(frozen=True)
class BlockNames:
    """The names that a block binds: how to read them all, how to set them all; and a look at what else it reads."""

    get: Thunk
    put: Callable[[tuple[Any, ...]], None]
    names: tuple[str, ...]
    look: Thunk

    def and_more(self, get: Thunk, put: Callable[[tuple[Any, ...]], None], names: tuple[str, ...]) -> BlockNames:
        """These names, and some of our own beside them."""
        count = len(self.names)

        def put_all(values: tuple[Any, ...]) -> None:
            self.put(values[:count])
            put(values[count:])

        return BlockNames(lambda: (*self.get(), *get()), put_all, (*self.names, *names), self.look)


class Trace(Protocol):
    """What a running trace offers to rewritten code."""

    def truth(self, value: Any) -> Any:
        """A plain bool where the value's truth is known, otherwise something to branch on."""

    def branch(self, test: Any, then: Thunk, orelse: Thunk, state: BlockNames) -> Any:
        """Both arms as regions; what they return and bind is merged."""

    def forked(self, block: Thunk, state: BlockNames) -> Any:
        """The block; where a branch in what it calls parts for longer than its own block, the block in both arms."""

    def escape(self, state: BlockNames) -> Any:
        """What keeps the errors that leave the loop which begins just now; None where none does that is caught."""

    def repeat_while(self, test: Thunk, first: Any, body: Thunk, state: BlockNames) -> None:
        """A loop that goes on while a traced test holds; `first` is the test's first answer."""

    def becomes_traced(self, round: Thunk, state: BlockNames) -> bool:
        """Whether the test of a loop is plain at first and traced after one round."""

    def repeat_for(self, sequence: Any, body: Callable[[Any], None], stop: Thunk, state: BlockNames) -> None:
        """A loop over a sequence of traced length."""

    def went_step_by_step(self, over: Any, body: Callable[[Any], None], stop: Thunk, state: BlockNames) -> bool:
        """Whether a loop went through an iterator of which a traced value may tell where it ends."""

    def endless(self, over: Any, round: Callable[[Any], Any], state: BlockNames) -> Any:
        """The sequence behind an iterable without end, such as `itertools.count`, whose loop a traced value ends."""

    def ended_early(self, over: Any, body: Callable[[Any], None], stop: Thunk, state: BlockNames) -> bool:
        """Whether a loop over a long plain range is one that a traced value ends, and was recorded as such."""

    def stopped_early(self, over: Any, count: int) -> None:
        """A traced value ended a loop over an iterable of unknown length, of which `count` items were taken."""

    def sequence(self, value: Any) -> Any:
        """A sequence of traced length behind `value`, or None where its length is plain."""

    def collect(self, sequence: Any, each: Callable[[Any], Any]) -> Any:
        """What `each` gives for every item of a sequence of traced length."""

    def generator(self, run: Callable[..., None]) -> Any:
        """What a call of a generator gives; `run` is its code, which calls what goes through it."""

    def went_into(self, manager: Any, body: Callable[[Any], Any]) -> bool:
        """Whether the block of a `with` was run by the generator of rewritten code that is behind the manager."""

    def generator_behind(self, over: Any) -> Any:
        """The generator of rewritten code that going through `over` would run, or None."""

    def taken_apart(self, items: Any, first: int, last: int | None) -> list[Any] | None:
        """The items of a list of open length that an assignment takes apart; None where its length is plain."""

    def decides_lookup(self, container: Any, key: Any) -> bool:
        """Whether a traced key chooses among the plain entries of a container."""

    def looked_up(self, container: Any, key: Any, *default: Any) -> Any: ...

    def want_table(self, container: Any) -> None:
        """A dict is given a key that may be new: starts again with a table in its place, where that is possible."""

    def put_under(self, container: Any, key: Any, value: Any) -> None:
        """A dict is given a value under one of its plain keys, which a traced one chooses."""

    def update_under(self, container: Any, key: Any, change: Callable[[Any, Any], Any], value: Thunk) -> bool:
        """`table[key] += value` where a traced key chooses among tensors; False where none of them is one."""

    def holds(self, container: Any, item: Any) -> Any:
        """Whether a container holds an item, where either is traced; None where Python can tell."""

    def text(self, before: str, value: Any, after: str) -> Any:
        """Text that holds a traced number; None where the value is plain."""

    def message(self, make: Callable[[], str]) -> str:
        """Text that a traced value may be a part of; then it is to be shown, and nothing else."""

    def each_way(self, values: list[Any], function: Callable[[list[Any]], Any]) -> Any:
        """What a function gives for values of which some may be one of a few texts or the like."""

    def holds_traced(self, values: Any) -> bool:
        """Whether a value, or one of a tuple of them, is traced."""

    def number_of_thing(self, thing: Any) -> int:
        """A number for a text, a layer or the like, of which one or another is meant."""

    def negate(self, value: Any) -> Any: ...

    def check(self, test: Any, error: type[Exception] | None = AssertionError, said: str = "") -> None:
        """The rest of the program may rely on this: eager raises the error where it does not hold.

        Where there is none, the report tells that it was assumed; `said` is what.
        """

    def check_if_caught(self, test: Thunk, error: type[Exception]) -> None:
        """The same, where nothing is to be told unless the user's code goes on with the error."""

    def builtin(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """What to call for a Python builtin where an argument may be traced."""

    def of_all(self, function: Any, items: Any) -> Any:
        """What a builtin gives that is called with all items of an open list; None where it is for Python to call."""

    def new_list(self, items: Iterable[Any]) -> list[Any]:
        """A list that branches and loops may leave with an open number of items."""

    def new_dict(self, parts: Iterable[Any]) -> dict[Any, Any]:
        """A dict that branches and loops may leave with keys that are not there on every way."""

    def copied(self, tensor: Any) -> Any:
        """A tensor whose memory is its own, where it matters."""

    def took_out(self, item: Any, structure: Any, values: Sequence[Any]) -> None:
        """An item of a list of open length was made of these values: it must be left as it is, or be put back."""

    def put_back(self, item: Any) -> None:
        """The list holds it as it is now."""

    def may_be(self, made: Any, parts: Iterable[Any]) -> None:
        """A tensor stands for others, which somebody may write in place."""

    def entered_by_hand(self) -> None:
        """Starts again with the `with` that runs just now handing over its block; returns where it does already."""

    def rewrite_caller(self) -> None:
        """Starts again with the function that runs just now rewritten; returns where it is already."""

    def remembered(self, items: Any) -> Any:
        """A plain iterator as one that can be put back to where it was; anything else as it is."""

    def stands_for_several(self) -> None:
        """Something was made that is one thing on one way and another on another."""

    def is_same(self, left: Any, right: Any) -> Any:
        """`left is right`, where that may depend on the way that the model took."""

    def asked_by_rewritten(self) -> bool:
        """Whether the code that asks just now is rewritten; starts again where it can be. False for a library's."""


class _Here(threading.local):
    trace: Trace | None = None


TRACE = _Here()


def fails_unless(test: Thunk, error: type[Exception]) -> None:
    """Eager raises an error where this does not hold; somebody may catch it. Outside a trace, Python raises it."""
    if TRACE.trace is not None:
        TRACE.trace.check_if_caught(test, error)
