"""`filter`, `functools.reduce` and functions of `itertools` over sequences whose length or items are traced.

Each is a generator of ours: it calls what goes through it (see `generators.py`).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from trueport.capture.containers.generators import Emit, Generated
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.sequences import OpenSequence
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.recording.flow import Flow
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import NO_NAMES, RUNTIME_FUNCTIONS

Stopped = Callable[[], Any]


def _go_through(items: Any, body: Callable[[Any], None], stopped: Stopped) -> None:
    RUNTIME_FUNCTIONS.for_(items, body, stopped, NO_NAMES)


def _when(test: Any, then: Callable[[], None]) -> None:
    RUNTIME_FUNCTIONS.if_(test, then, _nothing, NO_NAMES)


def _nothing(*_: Any) -> None:
    return None


def _is_open(control: Flow, items: Any) -> bool:
    return isinstance(items, Generated) or control.sequence(items) is not None


def _holds_traced(items: Any) -> bool:
    return isinstance(items, torch.Tensor) or (
        isinstance(items, (list, tuple)) and any(isinstance(item, (torch.Tensor, *Symbolic)) for item in items)
    )


@traced_for(filter)
def _filter(control: Flow, test: Callable[[Any], Any] | None, items: Any) -> Any:
    if not _is_open(control, items) and not _holds_traced(items):
        return filter(test, items)

    def run(emit: Emit, stopped: Stopped) -> None:
        _go_through(items, lambda item: _when(item if test is None else test(item), lambda: emit(item)), stopped)

    return Generated(run)


@traced_for(itertools.filterfalse)
def _filterfalse(control: Flow, test: Callable[[Any], Any] | None, items: Any) -> Any:
    if not _is_open(control, items) and not _holds_traced(items):
        return itertools.filterfalse(test, items)
    return _filter(control, lambda item: control.negate(item if test is None else test(item)), items)


@traced_for(itertools.tee)
def _tee(control: Flow, items: Any, count: int = 2) -> Any:
    if not _is_open(control, items):
        return itertools.tee(items, count)
    if isinstance(items, Generated):
        items = items.collected()
    return tuple(RUNTIME_FUNCTIONS.traced(iter)(items) for _ in range(count))


@traced_for(functools.reduce)
def _reduce(control: Flow, function: Callable[[Any, Any], Any], items: Any, *initial: Any) -> Any:
    function = RUNTIME_FUNCTIONS.traced(function)
    if not _is_open(control, items):
        return functools.reduce(function, items, *initial)
    if not initial:
        whole = RUNTIME_FUNCTIONS.traced(list)(items)
        items, initial = whole[1:], (whole[0],)
    held = TracedList(initial)  # a list, since the rounds of a loop change it

    def combine(item: Any) -> None:
        held[0] = function(held[0], item)

    _go_through(items, combine, lambda: False)
    return held[0]


@traced_for(itertools.accumulate)
def _accumulate(control: Flow, items: Any, func: Any = operator.add, *, initial: Any = None) -> Any:
    func = RUNTIME_FUNCTIONS.traced(func)
    if not _is_open(control, items):
        return itertools.accumulate(items, func, initial=initial)
    whole = RUNTIME_FUNCTIONS.traced(list)(items)
    first, rest = (whole[0], whole[1:]) if initial is None else (initial, whole)

    def run(emit: Emit, stopped: Stopped) -> None:
        held = TracedList([first])

        def combine(item: Any) -> None:
            held[0] = func(held[0], item)
            emit(held[0])

        emit(first)
        _go_through(rest, combine, stopped)

    return Generated(run)


@traced_for(itertools.chain)
def _chain(control: Flow, *several: Any) -> Any:
    if not any(_is_open(control, items) for items in several):
        return itertools.chain(*several)

    def run(emit: Emit, stopped: Stopped) -> None:
        for items in several:
            _when(control.negate(stopped()), lambda items=items: _go_through(items, emit, stopped))  # type: ignore[misc]

    return Generated(run)


@traced_for(itertools.product)
def _product(control: Flow, *several: Any, repeat: int = 1) -> Any:
    if not any(_is_open(control, items) for items in several):
        return itertools.product(*several, repeat=repeat)
    axes = [RUNTIME_FUNCTIONS.traced(list)(items) for items in several] * repeat

    def run(emit: Emit, stopped: Stopped) -> None:
        def nest(chosen: tuple[Any, ...], rest: Iterable[Any]) -> None:
            left = tuple(rest)
            if not left:
                emit(chosen)
            else:
                _go_through(left[0], lambda item: nest((*chosen, item), left[1:]), stopped)

        nest((), axes)

    return Generated(run)


@traced_for(itertools.takewhile)
def _takewhile(control: Flow, test: Callable[[Any], Any], items: Any) -> Any:
    if not _is_open(control, items) and not _holds_traced(items):
        return itertools.takewhile(test, items)

    def run(emit: Emit, stopped: Stopped) -> None:
        over = TracedList([False])

        def take(item: Any) -> None:
            fits = test(item)
            over[0] = control.negate(fits)
            _when(fits, lambda: emit(item))

        _go_through(items, take, lambda: RUNTIME_FUNCTIONS.or_(over[0], stopped))

    return Generated(run)


@traced_for(itertools.dropwhile)
def _dropwhile(control: Flow, test: Callable[[Any], Any], items: Any) -> Any:
    if not _is_open(control, items) and not _holds_traced(items):
        return itertools.dropwhile(test, items)

    def run(emit: Emit, stopped: Stopped) -> None:
        begun = TracedList([False])

        def take(item: Any) -> None:
            begun[0] = RUNTIME_FUNCTIONS.or_(begun[0], lambda: control.negate(test(item)))
            _when(begun[0], lambda: emit(item))

        _go_through(items, take, stopped)

    return Generated(run)


@traced_for(itertools.compress)
def _compress(control: Flow, items: Any, selectors: Any) -> Any:
    if not any(_is_open(control, each) or _holds_traced(each) for each in (items, selectors)):
        return itertools.compress(items, selectors)

    def run(emit: Emit, stopped: Stopped) -> None:
        pairs = RUNTIME_FUNCTIONS.traced(zip)(items, selectors)
        _go_through(pairs, lambda pair: _when(pair[1], lambda: emit(pair[0])), stopped)

    return Generated(run)


@traced_for(itertools.starmap)
def _starmap(control: Flow, function: Callable[..., Any], items: Any) -> Any:
    function = RUNTIME_FUNCTIONS.traced(function)
    if not _is_open(control, items):
        return itertools.starmap(function, items)
    return RUNTIME_FUNCTIONS.generator(items, function, True)


@traced_for(itertools.pairwise)
def _pairwise(control: Flow, items: Any) -> Any:
    if not _is_open(control, items):
        return itertools.pairwise(items)
    whole = RUNTIME_FUNCTIONS.traced(list)(items)
    return OpenSequence(torch.sym_max(whole.length - 1, 0), lambda i: (whole[i], whole[i + 1]))


@traced_for(itertools.islice)
def _islice(control: Flow, items: Any, *bounds: Any) -> Any:
    if not _is_open(control, items) and not any(isinstance(bound, Symbolic) for bound in bounds):
        return itertools.islice(items, *bounds)
    return RUNTIME_FUNCTIONS.traced(list)(items)[slice(*bounds)]


@traced_for(itertools.combinations)
def _combinations(control: Flow, items: Any, r: int) -> Any:
    if not _is_open(control, items):
        return itertools.combinations(items, r)
    whole = RUNTIME_FUNCTIONS.traced(list)(items)

    def run(emit: Emit, stopped: Stopped) -> None:
        def nest(chosen: tuple[Any, ...], first: Any) -> None:
            if len(chosen) == r:
                emit(chosen)
                return
            left = OpenSequence(torch.sym_max(whole.length - first, 0), lambda i: i + first)
            _go_through(left, lambda i: nest((*chosen, whole[i]), i + 1), stopped)

        nest((), 0)

    return Generated(run)


@traced_for(itertools.zip_longest)
def _zip_longest(control: Flow, *several: Any, fillvalue: Any = None) -> Any:
    if not any(_is_open(control, items) for items in several):
        return itertools.zip_longest(*several, fillvalue=fillvalue)
    wholes = [RUNTIME_FUNCTIONS.traced(list)(items) for items in several]
    lengths = [RUNTIME_FUNCTIONS.traced(len)(whole) for whole in wholes]

    def at(whole: Any, length: Any, i: Any) -> Any:
        return RUNTIME_FUNCTIONS.ternary(i < length, lambda: RUNTIME_FUNCTIONS.item(whole, i), lambda: fillvalue)

    longest = functools.reduce(torch.sym_max, lengths)
    return OpenSequence(longest, lambda i: tuple(map(at, wholes, lengths, itertools.repeat(i))))
