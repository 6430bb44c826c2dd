"""Python's builtins over sequences, where their length or their items are traced."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sized
from typing import Any

import torch

from trueport.capture.containers.generators import Generated, as_list
from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.pieces import unbind
from trueport.capture.containers.sequences import OpenSequence, opened, refuse
from trueport.capture.containers.sets import TracedSet
from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.python.builtin_functions import as_bool, traced_for
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import itself, later
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals.symbolic import expr_of, is_symbolic, is_traced, plain_number


@traced_for(range)
def _range(control: Flow, *bounds: Any) -> Any:
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    start, stop, step = map(plain_number, (start, stop, step))
    if not any(map(is_symbolic, (start, stop, step))):
        return range(start, stop, step)
    if not is_symbolic(step) and abs(step) == 1:
        count = stop - start if step > 0 else start - stop
    else:
        count = -((start - stop) // step)
    known = control.tracer.symbols.number_of(count) if is_symbolic(count) else count
    if type(known) is int:  # range(0, n, n) is one round, whatever n
        return [start + i * step for i in range(known)]
    lowest = control.tracer.symbols.shapes.lowest(expr_of(count))
    return OpenSequence(count if bool(lowest >= 0) else torch.sym_max(count, 0), lambda i: start + i * step)


# --- sums and quantifiers


@traced_for(sum)
def _sum(control: Flow, items: Any, start: Any = 0) -> Any:
    if control.sequence(items) is None:
        return sum(items, start)
    rows, back = rows_of(control, items)
    return back(rows.sum(0)) + start


def _quantifier(of_rows: Callable[..., Any], join: Callable[..., Any], of_none: bool) -> Callable[..., Any]:
    def quantified(control: Flow, items: Any) -> Any:
        if control.sequence(items) is not None:
            return as_bool(control, of_rows(rows_of(control, items)[0]))
        return as_bool(control, join(of_none, *[later(itself, item) for item in items]))

    return quantified


traced_for(any)(_quantifier(torch.any, RUNTIME_FUNCTIONS.or_, False))
traced_for(all)(_quantifier(torch.all, RUNTIME_FUNCTIONS.and_, True))


def rows_of(control: Flow, items: Any) -> tuple[torch.Tensor, Callable[[torch.Tensor], Any]]:
    """All items along a first axis, and what makes a result of them what Python would give: numbers give numbers."""
    if isinstance(items, torch.Tensor):
        return items, itself
    items = as_list(items)
    if not is_open(items):
        items = control.sequence(items).collected()
    column, _ = items.rows().only
    return items.whole(), itself if column.number is None else torch.Tensor.item


# --- going through several things


@traced_for(enumerate)
def _enumerate(control: Flow, items: Any, start: int = 0) -> Any:
    if isinstance(items, Generated):
        return items.enumerated(start)
    sequence = control.sequence(items)
    if sequence is None:
        return enumerate(items, start)
    return OpenSequence(sequence.length, lambda i: (i + start, sequence.at(i)), sequence.most)


@traced_for(zip)
def _zip(control: Flow, *iterables: Any, **kwargs: Any) -> Any:
    if len(iterables) > 1 and isinstance(iterables[0], OfOpenLength) and len(set(map(id, iterables))) == 1:
        return iterables[0].several(len(iterables))
    if all(control.sequence(items) is None for items in iterables):
        return zip(*iterables, **kwargs)  # noqa: B905  as the user called it
    sequences = [_sequence(control, items) for items in iterables]
    lengths = [s.length for s in sequences if s.length is not None]
    most = [s.most for s in sequences if s.most is not None]
    return OpenSequence(
        functools.reduce(torch.sym_min, lengths),
        lambda i: tuple(s.at(i) for s in sequences),
        min(most) if most else None,
    )


def _sequence(control: Flow, items: Any) -> OpenSequence:
    """Something that is gone through together with something of open length."""
    found = control.sequence(items)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if isinstance(items, (itertools.count, itertools.cycle)):
        return opened(items)
    if isinstance(items, itertools.repeat) and "," not in repr(items):
        repeated = next(items)
        return OpenSequence(None, lambda _: repeated)
    items = as_list(items)
    if isinstance(items, range):
        return OpenSequence(len(items), lambda i: items.start + i * items.step)
    if not isinstance(items, Sized):
        return refuse("a generator is gone through together with something of open length", "make a list of it first")  # type: ignore[no-any-return]
    plain = list(items)  # type: ignore[call-overload]
    return OpenSequence(len(plain), plain.__getitem__, len(plain))


@traced_for(reversed)
def _reversed(control: Flow, items: Any) -> Any:
    sequence = control.sequence(items)
    if sequence is None:
        return reversed(items)
    if isinstance(items, torch.Tensor):  # torch makes a flipped copy: a write to a row of it does not reach the tensor
        return control.sequence(items.flip(0))
    if sequence.most is not None:
        return refuse(
            "something plain is gone through backwards together with something of open length", "reverse it first"
        )
    return OpenSequence(sequence.length, lambda i: sequence.at(sequence.length - 1 - i))


@traced_for(map)
def _map(control: Flow, function: Callable[..., Any], *iterables: Any) -> Any:
    function = RUNTIME_FUNCTIONS.traced(function)
    if len(iterables) == 1 and isinstance(iterables[0], Generated):
        return iterables[0].mapped(function)
    if all(control.sequence(items) is None for items in iterables):
        return map(function, *iterables)
    sequence = _zip(control, *iterables)
    return OpenSequence(sequence.length, lambda i: function(*sequence.at(i)), sequence.most)


@traced_for(list)
def _list(control: Flow, *args: Any) -> Any:
    given = args[0] if args else ()
    if (collected := as_list(given)) is not given:
        return collected
    sequence = control.sequence(given)
    return control.new_list(given) if sequence is None else _all_of(control, given, sequence)


@traced_for(tuple)
def _tuple(control: Flow, *args: Any) -> Any:
    given = as_list(args[0]) if args else ()
    sequence = control.sequence(given)
    if sequence is None:
        return tuple(given)
    made = _all_of(control, given, sequence)
    made.stands_for = tuple
    return made


def _all_of(control: Flow, items: Any, sequence: OpenSequence) -> Any:
    """A list of its own of what has an open length: the same items, which are gone through only where one must."""
    if is_open(items):
        made = TracedList.of(items.held)
        made.place = items.place
    elif isinstance(items, torch.Tensor):
        made = unbind(items).cut()
    else:
        made = sequence.collected()
    made.stands_for = list
    return made


@traced_for(set)
def _set(control: Flow, *args: Any) -> Any:
    return TracedSet(*args) if not args or control.sequence(args[0]) is None else set(*args)
