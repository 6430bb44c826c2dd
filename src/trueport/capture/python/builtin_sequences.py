"""Python's builtins over sequences, and those that order them, where their length or their items are traced."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sized
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.containers.generators import Generated, as_list
from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.parts import no_size
from trueport.capture.containers.pieces import unbind
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows, held_together
from trueport.capture.containers.sequences import OpenSequence, opened, refuse
from trueport.capture.containers.sets import TracedSet
from trueport.capture.containers.stepping import OfOpenLength
from trueport.capture.python.builtin_functions import as_bool, traced_for
from trueport.capture.python.polyfills.of_builtins import best, in_order, or_default
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import itself, later
from trueport.decompositions.arguments import flat
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals.symbolic import expr_of, is_number, is_symbolic, is_traced, plain_number


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
    iterables = tuple(items.rest() if isinstance(items, OfOpenLength) else items for items in iterables)
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
    if all(not isinstance(items, OfOpenLength) and control.sequence(items) is None for items in iterables):
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


def _extreme(plain: Any, symbolic: Any, control: Flow, *args: Any, **kwargs: Any) -> Any:
    items = args
    if len(args) == 1:
        sequence = control.sequence(args[0])
        if sequence is not None:
            return _extreme_of_open(control, args[0], plain, kwargs)
        items = tuple(args[0])
    key = _key(kwargs.get("key"))
    ranks = [key(item) for item in items] if key is not None else list(items)
    if not items or (not any(map(_is_traced, ranks)) and not _own_order(control, ranks)):
        return plain(items, **kwargs)
    if key is None and all(map(is_number, items)):
        return functools.reduce(symbolic, items)
    return best(list(zip(items, ranks, strict=True)), None, plain is max)


traced_for(max)(functools.partial(_extreme, max, torch.sym_max))
traced_for(min)(functools.partial(_extreme, min, torch.sym_min))


def _own_order(control: Flow, ranks: list[Any]) -> bool:
    """Whether a class of the user's tells the order, which may be decided by a tensor."""
    return any(control.own_method(rank, name) for rank in ranks for name in ("__lt__", "__gt__"))


def _key(function: Any) -> Any:
    return None if function is None else RUNTIME_FUNCTIONS.traced(function)


def _extreme_of_open(control: Flow, items: Any, plain: Any, kwargs: dict[str, Any]) -> Any:
    whole = _open_list(items)
    if "default" in kwargs:
        given = {name: value for name, value in kwargs.items() if name != "default"}
        return or_default(plain, whole, kwargs["default"], given)
    control.check_if_caught(lambda: whole.length > 0, ValueError)
    if kwargs.get("key") is None and (isinstance(items, torch.Tensor) or not whole.rows().is_table):
        rows, back = rows_of(control, items if isinstance(items, torch.Tensor) else whole)
        if rows.dim() == 1:
            return back(rows.amax(0) if plain is max else rows.amin(0))
    return best(whole, kwargs.get("key") or itself, plain is max)


def _open_list(items: Any) -> Any:
    return items if is_open(items) else RUNTIME_FUNCTIONS.traced(list)(items)


@traced_for(sorted)
def _sorted(control: Flow, items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    """A few traced items are compared, and more of them are sorted by torch."""
    if control.sequence(items) is not None:
        return _sorted_open(_open_list(items), _key(key), reverse)
    key = _key(key)
    pairs = [(item, item if key is None else key(item)) for item in items]
    ranks = [rank for _, rank in pairs]
    if not any(map(_is_traced, ranks)) and not _own_order(control, ranks):
        return sorted((item for item, _ in pairs), key=key, reverse=reverse)
    if len(pairs) > limits.ITEMS_COMPARED:
        with contextlib.suppress(NotAlike):
            return control.new_list(_by_torch([item for item, _ in pairs], [rank for _, rank in pairs], reverse))
    return control.new_list(in_order(pairs, reverse))


def _by_torch(items: list[Any], ranks: list[Any], reverse: bool) -> list[Any]:
    """Items of one shape are held in tensors, and taken in the order of their ranks. Raises NotAlike."""
    keys, shape = ItemShape.of(ranks, no_size), ItemShape.of(items, no_size)
    if len(keys.columns) != 1 or keys.columns[0].sizes or keys.columns[0].fixed or keys.columns[0].dtype is torch.bool:
        raise NotAlike
    if any(column.is_packed for column in shape.columns):
        raise NotAlike
    order = keys.rows(ranks).tensors[0].sort(stable=True, descending=reverse).indices
    held = shape.rows(items).tensors
    return Rows(shape, tuple(held_together(tensor[order], [tensor]) for tensor in held)).exactly(len(items))


def _is_traced(rank: Any) -> bool:
    """Whether something that is put in order is traced, or a tuple of which an item is."""
    return any(map(is_traced, flat(rank)))


def _sorted_open(whole: Any, key: Any, reverse: bool) -> Any:
    """All items in the order of their ranks, which torch sorts."""
    ranks = whole if key is None else RUNTIME_FUNCTIONS.comprehension(whole, key, False)
    rows = whole.rows()
    numbers = _numbers_first(ranks.rows())
    if not numbers or any(each.is_packed for each in rows.shape.columns):
        return refuse("`sorted` goes through something of open length, by what is no number", "use torch.sort")
    order = numbers[-1].sort(stable=True, descending=reverse).indices
    for column in reversed(numbers[:-1]):  # where the first are equal, the second decide
        order = order[column[order].sort(stable=True, descending=reverse).indices]
    held = tuple(held_together(tensor[order], [tensor]) for tensor in rows.tensors)
    return TracedList.of_rows(Rows(rows.shape, held))


def _numbers_first(ranks: Rows) -> list[torch.Tensor]:
    """The columns by which tuples are ordered: eager compares tensors of several elements only to refuse it."""
    varied = [(column, tensors) for column, tensors in ranks.columns() if not column.fixed]
    return [tensors[0] for column, tensors in itertools.takewhile(lambda each: not each[0].sizes, varied)]
