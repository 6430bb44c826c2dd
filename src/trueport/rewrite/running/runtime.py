"""What rewritten code calls. Outside a trace it is plain Python; in one, tensors and symbols become regions.

The trace is not known here: it registers itself in `TRACE` while it runs, on its own thread. So rewritten code runs
eagerly like the code that it was made from, on any other thread too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from trueport.rewrite.running.asking import TRACE as TRACE
from trueport.rewrite.running.asking import UNBOUND as UNBOUND
from trueport.rewrite.running.asking import BlockNames as BlockNames
from trueport.rewrite.running.asking import Thunk, nothing
from trueport.rewrite.running.comparing import Comparing
from trueport.rewrite.running.lookups import Lookups
from trueport.rewrite.running.patterns import Patterns
from trueport.rewrite.running.repeating import Repeating
from trueport.rewrite.running.shared_names import shared_names

_CONVERSION = re.compile(r"%[-+ #0-9.*]*[diouxXeEfFgGcrsa]")
"""One place of a `%` format."""
_WHOLE = re.compile(r"%[dis]")
"""One in which a whole number stands as it is."""
_UNKNOWN = "\x01\x02"
"""Stands in a text that has a number in another form (`capture/values/texts.py`)."""


_CONVERTED: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}
"""What `!r` and the like do to a value in an f-string, by the number that the syntax tree has for it."""


class RuntimeFunctions(Comparing, Lookups, Patterns, Repeating):
    """The functions that rewritten code calls, as one object that its constants can hold."""

    any_error = Exception
    """What a bare `except:` of the user's catches in rewritten code."""

    # --- names

    names = staticmethod(shared_names)

    # --- branches

    def if_(self, test: Any, then: Thunk, orelse: Thunk, state: BlockNames) -> None:
        trace = TRACE.trace
        if trace is None:
            then() if test else orelse()
            return
        truth = trace.truth(test)
        if isinstance(truth, bool):
            then() if truth else orelse()
        else:
            trace.branch(truth, then, orelse, state)

    def if_return(self, test: Any, then: Thunk, orelse: Thunk, state: BlockNames) -> Any:
        trace = TRACE.trace
        if trace is None:
            return then() if test else orelse()
        truth = trace.truth(test)
        if isinstance(truth, bool):
            return then() if truth else orelse()
        return trace.branch(truth, then, orelse, state)

    @staticmethod
    def forked(block: Thunk, state: BlockNames) -> Any:
        """A statement, and maybe the rest of its block, run for each way through a branch in what it calls."""
        trace = TRACE.trace
        return block() if trace is None else trace.forked(block, state)

    def ternary(self, test: Any, then: Thunk, orelse: Thunk) -> Any:
        return self.if_return(test, then, orelse, NO_NAMES)

    def assert_(self, test: Any, message: Thunk) -> None:
        trace = TRACE.trace
        truth = test if trace is None else trace.truth(test)
        if trace is not None and not isinstance(truth, bool):
            trace.check(truth)
        elif not truth:
            said = message()
            raise AssertionError(said) if said is not None else AssertionError

    # --- lists

    def comprehension(self, over: Iterable[Any], each: Callable[..., Any], unpack: bool) -> Any:
        trace = TRACE.trace
        take = _unpacking(each) if unpack else each
        if trace is not None and (generator := trace.generator_behind(over)) is not None:
            return generator.collected(take)
        sequence = None if trace is None else trace.sequence(over)
        if trace is None or sequence is None:
            return self.list_([take(item) for item in over])
        return trace.collect(sequence, take)

    def generator(self, over: Iterable[Any], each: Callable[..., Any], unpack: bool) -> Any:
        trace = TRACE.trace
        take = _unpacking(each) if unpack else each
        if trace is not None and (generator := trace.generator_behind(over)) is not None:
            return generator.mapped(take)
        sequence = None if trace is None else trace.sequence(over)
        if trace is None or sequence is None:
            return (take(item) for item in over)
        return trace.collect(sequence, take)

    @staticmethod
    def generated(run: Callable[..., None], plain: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """A generator's call: its code turned around in a trace, as it was outside of one."""
        trace = TRACE.trace
        if trace is None:
            return plain(*given)
        return trace.generator(lambda emit, stopped: run(emit, stopped, *given))

    @staticmethod
    def list_(items: list[Any]) -> list[Any]:
        """A list that the code wrote down, which a trace may leave with an open number of items."""
        return items if TRACE.trace is None else TRACE.trace.new_list(items)

    @staticmethod
    def dict_(*parts: Any) -> dict[Any, Any]:
        """A dict of these, later ones first in rank."""
        trace = TRACE.trace
        if trace is not None:
            return trace.new_dict(parts)
        return parts[0] if len(parts) == 1 else {key: part[key] for part in parts for key in part}

    def set_(self, items: set[Any]) -> set[Any]:
        made: set[Any] = items if TRACE.trace is None else self.traced(set)(items)
        return made

    def spread(self, items: Any) -> list[Any]:
        """What `*items` is in a list, before anything that is written after it happens."""
        spread: list[Any] = self.traced(list)(items)
        return spread

    def unpacked(self, *parts: tuple[bool, Any]) -> list[Any]:
        """`[a, *items]`: items of which the flag is set are unpacked."""
        made = self.list_([])
        for unpack, value in parts:
            made.extend(value if unpack else [value])
        return made

    def unpacked_tuple(self, *parts: tuple[bool, Any]) -> Any:
        """The same for a tuple."""
        return self.traced(tuple)(self.unpacked(*parts))

    def of_all(self, function: Any, items: Any) -> Any:
        """`zip(*items)`, `max(*items)`: there may be any number of items."""
        found = None if TRACE.trace is None else TRACE.trace.of_all(function, items)
        return self.traced(function)(*items) if found is None else found

    @staticmethod
    def taken_apart(items: Any, first: int, last: int | None) -> Any:
        """`a, b = items`, and `a, *b, c = items` where the numbers of names before and after the star are given."""
        trace = TRACE.trace
        parts = None if trace is None else trace.taken_apart(items, first, last)
        if parts is not None:
            return parts
        if last is None:
            return items
        whole = list(items)
        if len(whole) < first + last:
            raise ValueError(f"not enough values to unpack (expected at least {first + last}, got {len(whole)})")
        end = len(whole) - last
        return [*whole[:first], whole[first:end], *whole[end:]]

    # --- booleans

    def and_(self, value: Any, *others: Thunk) -> Any:
        """`a and b` where a test asks for its truth only."""
        return self._first_that(False, value, others, _truth_of)

    def or_(self, value: Any, *others: Thunk) -> Any:
        return self._first_that(True, value, others, _truth_of)

    def and_value(self, value: Any, *others: Thunk) -> Any:
        """`a and b` itself: a where it does not hold, otherwise b."""
        return self._first_that(False, value, others, _itself)

    def or_value(self, value: Any, *others: Thunk) -> Any:
        """`n or 4`: n itself where it holds."""
        return self._first_that(True, value, others, _itself)

    def _first_that(self, wanted: bool, value: Any, others: Sequence[Thunk], given: Callable[[Any], Any]) -> Any:
        """The first operand whose truth is the wanted one, or the last; later ones are not evaluated."""
        for i, other in enumerate(others):
            trace = TRACE.trace
            truth = bool(value) if trace is None else trace.truth(value)
            if truth is wanted:
                return value
            if truth is not (not wanted):
                assert trace is not None
                found = _always(value if given is _itself and truth is not value else wanted)
                rest = self._rest(wanted, other, others[i + 1 :], given)
                return trace.branch(truth, found if wanted else rest, rest if wanted else found, OF_A_TEST)
            value = other()
        return value

    def _rest(self, wanted: bool, first: Thunk, rest: Sequence[Thunk], given: Callable[[Any], Any]) -> Thunk:
        """The operands that are not evaluated yet."""
        return lambda: given(self._first_that(wanted, first(), rest, given) if rest else first())

    def not_(self, value: Any) -> Any:
        trace = TRACE.trace
        return (not value) if trace is None else trace.negate(value)

    # --- other questions

    @staticmethod
    def numel(value: Any) -> Any:
        """`x.shape.numel()`, in which torch would ask for plain numbers; and `numel` of anything else."""
        return math.prod(value) if TRACE.trace is not None and isinstance(value, tuple) else value.numel()

    @staticmethod
    def text(before: str, value: Any, after: str) -> Any:
        """An f-string with one value in it."""
        trace = TRACE.trace
        made = None if trace is None else trace.text(before, value, after)
        if made is not None:
            return made
        return f"{before}{value}{after}" if trace is None else trace.message(lambda: f"{before}{value}{after}")

    @staticmethod
    def message(*pieces: Any) -> Any:
        """An f-string, of which each piece is text, or a value with its conversion and its format."""
        values = [piece[0] for piece in pieces if isinstance(piece, tuple)]

        def made_of(given: list[Any]) -> str:
            left = iter(given)
            return "".join(formed(next(left), *p[1:]) if isinstance(p, tuple) else p for p in pieces)

        def written(given: list[Any]) -> str:
            return made_of(given) if trace is None else trace.message(lambda: made_of(given))

        def formed(value: Any, conversion: int, form: str) -> str:
            return format(_CONVERTED[conversion](value), form)

        trace = TRACE.trace
        return written(values) if trace is None else trace.each_way(values, written)

    @staticmethod
    def percent(form: Any, values: Any) -> Any:
        """`"%.2f" % values`; in a trace, traced numbers stand there by their names. Or a remainder."""
        trace = TRACE.trace
        if trace is None or not isinstance(form, str):
            return form % values
        if len(parts := _WHOLE.split(form)) == 2 and "%" not in "".join(parts):
            number = values[0] if isinstance(values, tuple) else values
            made = None if "%s" in form and hasattr(number, "ndim") else trace.text(parts[0], number, parts[1])
            if made is not None:
                return made
        if trace.holds_traced(values):
            form = _CONVERSION.sub(lambda place: "%s" if _WHOLE.fullmatch(place[0]) else f"%s{_UNKNOWN}", form)
        several = isinstance(values, tuple)
        given = list(values) if several else [values]

        def written(known: list[Any]) -> str:
            return trace.message(lambda: form % (tuple(known) if several else known[0]))

        return trace.each_way(given, written)

    # --- builtins

    def callee(self, function: Any) -> Any:
        """What the code calls by a name of its own, which may be a builtin: `self.act = math.tanh`."""
        return self.traced(function)

    @staticmethod
    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        trace = TRACE.trace
        return (None if trace is None else trace.builtin(function)) or function


def _unpacking(each: Callable[..., Any]) -> Callable[[Any], Any]:
    """For `for a, b in …`: the item is the arguments."""

    def take(item: Any) -> Any:
        return each(*item)

    return take


def _truth_of(value: Any) -> Any:
    """The truth of the last operand of `and`/`or`, as a bool or as something that stands for one."""
    trace = TRACE.trace
    return value if trace is None else trace.truth(value)


def _always(value: Any) -> Thunk:
    return lambda: value


def _itself(value: Any) -> Any:
    return value


NO_NAMES = BlockNames(tuple, nothing, (), tuple)
"""The state of a block that has no names of its own."""
OF_A_TEST = BlockNames(tuple, nothing, (), tuple)
"""The state of a branch that `and` or `or` makes: no names."""

RUNTIME_FUNCTIONS = RuntimeFunctions()

# Kept for `builtin` tables of traces: the functions that calls.py lets through here.
MATH_FUNCTIONS = frozenset(f for f in vars(math).values() if callable(f))
Items = Iterator[Any]
