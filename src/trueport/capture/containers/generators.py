"""Generators of rewritten code in a trace (see rewrite/generators.py): each calls what goes through it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from trueport.capture import limits
from trueport.capture.containers.lists import TracedList
from trueport.capture.stops.places import calling_frame
from trueport.diagnostics.rules.tp107_cannot_rewrite import CannotRewrite
from trueport.errors import refusal
from trueport.rewrite.ahead import rewritten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE

Emit = Callable[[Any], None]
Run = Callable[[Emit, Callable[[], Any]], None]
_NOTHING = object()


class Generated:
    """What a call of a generator gives: its code has not run yet, and runs once."""

    def __init__(self, run: Run) -> None:
        self._run: Run | None = run
        self._collected: TracedList | None = None
        self._advanced = False

    def push(self, emit: Emit, stopped: Callable[[], Any]) -> None:
        """Run it: `emit` is called with each item, and `stopped` tells after each whether no more are wanted."""
        run, self._run = self._run, None
        if run is not None:
            run(emit, stopped)

    def mapped(self, function: Callable[[Any], Any]) -> Generated:
        return Generated(lambda emit, stopped: self.push(lambda item: emit(function(item)), stopped))

    @rewritten
    def enumerated(self, start: Any) -> Any:
        number = start
        for item in self:
            yield number, item
            number = number + 1

    def collected(self, each: Callable[[Any], Any] | None = None) -> TracedList:
        """Its items as a list, or what `each` makes of them."""
        if self._collected is None:
            items = self._collected = TracedList()

            def emit(item: Any) -> None:
                items.append(item if each is None else each(item))
                if not items.is_open and len(items) > limits.ITEMS_OF_A_GENERATOR:
                    _refuse(
                        f"a generator gives more than {int(limits.ITEMS_OF_A_GENERATOR)} items,"
                        " and all of them are put into a list",
                        limit=limits.ITEMS_OF_A_GENERATOR,
                    )

            self.push(emit, lambda: False)
        return self._collected

    def first(self, default: Any = _NOTHING) -> Any:
        """What a first `next` gives."""
        if self._advanced:
            _by_hand()
        self._advanced = True
        items = self.collected()
        if items.is_open:
            if default is _NOTHING:
                return items[0]
            return RUNTIME_FUNCTIONS.ternary(items.length > 0, lambda: items[0], lambda: default)
        given = list.__iter__(items)
        return next(given) if default is _NOTHING else next(given, default)

    def __iter__(self) -> Iterator[Any]:
        if TRACE.trace is not None:
            TRACE.trace.rewrite_caller()
        return iter(self.collected())

    def __next__(self) -> Any:
        if TRACE.trace is not None and calling_frame().f_code.co_filename == contextlib.__file__:
            TRACE.trace.entered_by_hand()
        elif TRACE.trace is not None:
            TRACE.trace.rewrite_caller()
        return _by_hand()


def as_list(items: Any) -> Any:
    """The items of a generator of rewritten code as a list; anything else as it is."""
    return items.collected() if isinstance(items, Generated) else items


def _by_hand() -> Any:
    return _refuse(
        "a generator whose code decides by traced values is advanced by hand (`next`, `ExitStack.enter_context`)",
        "go through it with a `for`, or return a list of the values; enter a context manager with a `with` of its own",
    )


def _refuse(
    what: str,
    fix: str = "go through it with a `for`, or collect the values in a list and return it",
    limit: limits.Limit | None = None,
) -> Any:
    raise refusal(CannotRewrite(message=what, label="decided when the model runs", fix=fix, **limits.told(limit)))
