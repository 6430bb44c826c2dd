"""The largest, the smallest, and what is in order, where items or their number are traced."""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.parts import no_size
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows, held_together
from trueport.capture.containers.sequences import refuse
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.python.builtin_sequences import rows_of
from trueport.capture.python.polyfills.of_builtins import best, in_order, or_default
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import itself
from trueport.decompositions.arguments import flat
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.torch_internals.symbolic import is_number, is_traced


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
