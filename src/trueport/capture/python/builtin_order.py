"""The largest, the smallest, and what is in order, where items or their number are traced."""

from __future__ import annotations

import bisect
import contextlib
import functools
import heapq
import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.parts import ListParts, no_size
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows, held_together
from trueport.capture.containers.sequences import refuse
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.python.builtin_sequences import rows_of
from trueport.capture.recording.flow import Flow
from trueport.capture.values.chosen import later
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.rewrite.running.runtime import NO_NAMES, RUNTIME_FUNCTIONS

_TRACED = (torch.Tensor, *Symbolic)


@traced_for(max)
def _max(control: Flow, *args: Any, **kwargs: Any) -> Any:
    return _extreme(control, max, torch.sym_max, args, kwargs)


@traced_for(min)
def _min(control: Flow, *args: Any, **kwargs: Any) -> Any:
    return _extreme(control, min, torch.sym_min, args, kwargs)


def _extreme(control: Flow, plain: Any, symbolic: Any, args: Any, kwargs: Any) -> Any:
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
    if key is None and all(isinstance(i, (int, float, *Symbolic)) for i in items):
        return functools.reduce(symbolic, items)
    best = (items[0], ranks[0])
    for challenger in zip(items[1:], ranks[1:], strict=True):
        better = (RUNTIME_FUNCTIONS.gt if plain is max else RUNTIME_FUNCTIONS.lt)(challenger[1], best[1])
        best = RUNTIME_FUNCTIONS.ternary(better, lambda new=challenger: new, lambda old=best: old)  # type: ignore[misc]
    return best[0]


def _own_order(control: Flow, ranks: list[Any]) -> bool:
    """Whether a class of the user's tells the order, which may be decided by a tensor."""
    return any(control.own_method(rank, name) for rank in ranks for name in ("__lt__", "__gt__"))


def _key(function: Any) -> Any:
    return None if function is None else RUNTIME_FUNCTIONS.traced(function)


def _extreme_of_open(control: Flow, items: Any, plain: Any, kwargs: dict[str, Any]) -> Any:
    whole = _open_list(items)
    if "default" in kwargs:
        given = {name: value for name, value in kwargs.items() if name != "default"}
        there = later(_extreme_of_open, control, whole, plain, given)
        return RUNTIME_FUNCTIONS.ternary(whole.length > 0, there, lambda: kwargs["default"])
    control.check_if_caught(lambda: whole.length > 0, ValueError)
    if kwargs.get("key") is None and (isinstance(items, torch.Tensor) or not whole.rows().is_table):
        rows, back = rows_of(control, items if isinstance(items, torch.Tensor) else whole)
        if rows.dim() == 1:
            return back(rows.amax(0) if plain is max else rows.amin(0))
    return _best(whole, _key(kwargs.get("key")) or _itself, plain)


def _open_list(items: Any) -> Any:
    return items if is_open(items) else RUNTIME_FUNCTIONS.traced(list)(items)


def _best(whole: Any, key: Callable[[Any], Any], plain: Any) -> Any:
    """The first of the items whose key is the largest, or the smallest: a loop that keeps the best so far."""
    first = whole[0]
    best = TracedList([first, key(first)])  # a list, since the rounds of a loop change it

    def challenge(item: Any) -> None:
        rank = key(item)
        better = (RUNTIME_FUNCTIONS.gt if plain is max else RUNTIME_FUNCTIONS.lt)(rank, best[1])

        def take() -> None:
            best[0], best[1] = item, rank

        RUNTIME_FUNCTIONS.if_(better, take, _nothing, NO_NAMES)

    RUNTIME_FUNCTIONS.for_(whole[1:], challenge, lambda: False, NO_NAMES)
    return best[0]


@traced_for(sorted)
def _sorted(control: Flow, items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    """A plain number of traced items is sorted by comparing neighbours, as a network of branches."""
    if control.sequence(items) is not None:
        return _sorted_open(_open_list(items), _key(key), reverse)
    key = _key(key)
    pairs = [(item, item if key is None else key(item)) for item in items]
    ranks = [rank for _, rank in pairs]
    if not any(map(_is_traced, ranks)) and not _own_order(control, ranks):
        return sorted((item for item, _ in pairs), key=key, reverse=reverse)
    if len(pairs) > limits.ITEMS_COMPARED:
        with contextlib.suppress(NotAlike):
            return control.new_list(_in_order([item for item, _ in pairs], [rank for _, rank in pairs], reverse))
    for end in range(len(pairs) - 1, 0, -1):
        for i in range(end):
            left, right = pairs[i], pairs[i + 1]
            wrong = (RUNTIME_FUNCTIONS.lt if reverse else RUNTIME_FUNCTIONS.gt)(left[1], right[1])
            swapped = RUNTIME_FUNCTIONS.ternary(
                wrong,
                lambda left=left, right=right: (right, left),  # type: ignore[misc]
                lambda left=left, right=right: (left, right),  # type: ignore[misc]
            )
            pairs[i : i + 2] = swapped
    return control.new_list(item for item, _ in pairs)


def _in_order(items: list[Any], ranks: list[Any], reverse: bool) -> list[Any]:
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
    return isinstance(rank, _TRACED) or (isinstance(rank, (tuple, list)) and any(map(_is_traced, rank)))


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
    return TracedList.of(ListParts((Rows(rows.shape, held),)))


def _numbers_first(ranks: Rows) -> list[torch.Tensor]:
    """The columns by which tuples are ordered: eager compares tensors of several elements only to refuse it."""
    varied = [(column, tensors) for column, tensors in ranks.columns() if not column.fixed]
    return [tensors[0] for column, tensors in itertools.takewhile(lambda each: not each[0].sizes, varied)]


# --- heaps, and places in what is in order


def _places(plain: Any, before: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def place(control: Flow, items: Any, item: Any, *bounds: Any, **options: Any) -> Any:
        """As many as come before it."""
        if bounds or options or not (control.sequence(items) is not None or _is_traced((item, *items))):
            return plain(items, item, *bounds, **options)
        counted = RUNTIME_FUNCTIONS.traced(int)
        return RUNTIME_FUNCTIONS.traced(sum)(
            RUNTIME_FUNCTIONS.comprehension(items, lambda each: counted(before(each, item)), False)
        )

    return place


traced_for(bisect.bisect_left)(_places(bisect.bisect_left, RUNTIME_FUNCTIONS.lt))
traced_for(bisect.bisect_right)(_places(bisect.bisect_right, RUNTIME_FUNCTIONS.le))


def _is_heap_of_traced(control: Flow, heap: Any, *items: Any) -> bool:
    return control.sequence(heap) is not None or _is_traced((*items, *heap))


@traced_for(heapq.heappush)
def _heappush(control: Flow, heap: Any, item: Any) -> None:
    if not _is_heap_of_traced(control, heap, item):
        heapq.heappush(heap, item)
        return
    _plain_heap(heap).append(item)
    _move_up(heap, 0, len(heap) - 1)


@traced_for(heapq.heappop)
def _heappop(control: Flow, heap: Any) -> Any:
    if not _is_heap_of_traced(control, heap):
        return heapq.heappop(heap)
    last = _plain_heap(heap).pop()
    if not heap:
        return last
    first = heap[0]
    _fill_from_below(heap, 0, 0, last)
    return first


@traced_for(heapq.heapify)
def _heapify(control: Flow, heap: Any) -> None:
    if not _is_heap_of_traced(control, heap):
        heapq.heapify(heap)
        return
    for place in reversed(range(len(_plain_heap(heap)) // 2)):
        _fill_from_below(heap, place, place, heap[place])


def _plain_heap(heap: Any) -> TracedList:
    """A list that arms may change, of a few items: which place is whose is decided by comparisons, as in `heapq`."""
    if isinstance(heap, TracedList) and not heap.is_open and len(heap) <= limits.ITEMS_IN_A_HEAP:
        return heap
    full = limits.ITEMS_IN_A_HEAP if isinstance(heap, TracedList) and not heap.is_open else None
    refuse("a heap holds traced items, and many of them or an open number", "sort them: torch.sort", full)
    raise AssertionError("a refusal is never silent")


def _move_up(heap: TracedList, start: int, place: int) -> None:
    """Put the item at a place where it belongs on the way up to `start`, which is in order."""
    way = [place]
    while way[-1] > start:
        way.append((way[-1] - 1) >> 1)
    before = [heap[each] for each in way]
    item = before[0]
    comes_first = [RUNTIME_FUNCTIONS.lt(item, each) for each in before[1:]]
    for k, each in enumerate(way):
        held = item if k == 0 else _either(comes_first[k - 1], item, before[k])
        heap[each] = held if k == len(way) - 1 else _either(comes_first[k], before[k + 1], held)


def _fill_from_below(heap: TracedList, start: int, place: int, item: Any) -> None:
    """Move the smaller of the items below up, down to a place below which nothing is; the item goes up from there."""
    below = 2 * place + 1
    if below >= len(heap):
        heap[place] = item
        _move_up(heap, start, place)
        return

    def take(child: int) -> None:
        heap[place] = heap[child]
        _fill_from_below(heap, start, child, item)

    if below + 1 == len(heap):
        take(below)
    else:
        smaller = RUNTIME_FUNCTIONS.lt(heap[below], heap[below + 1])
        RUNTIME_FUNCTIONS.if_(smaller, later(take, below), later(take, below + 1), NO_NAMES)


def _either(test: Any, then: Any, orelse: Any) -> Any:
    return RUNTIME_FUNCTIONS.ternary(test, lambda: then, lambda: orelse)


@traced_for(heapq.nsmallest)
def _nsmallest(control: Flow, count: Any, items: Any, key: Any = None) -> Any:
    return RUNTIME_FUNCTIONS.list_(_sorted(control, items, key=key))[:count]


@traced_for(heapq.nlargest)
def _nlargest(control: Flow, count: Any, items: Any, key: Any = None) -> Any:
    return RUNTIME_FUNCTIONS.list_(_sorted(control, items, key=key, reverse=True))[:count]


@traced_for(statistics.mean, statistics.fmean)
def _mean(control: Flow, items: Any, *weights: Any, **options: Any) -> Any:
    numbers = list(items) if control.sequence(items) is None else items
    if weights or options or not _is_heap_of_traced(control, numbers):
        return statistics.fmean(numbers, *weights, **options) if weights or options else statistics.mean(numbers)
    count = RUNTIME_FUNCTIONS.traced(len)(RUNTIME_FUNCTIONS.traced(list)(numbers))
    return RUNTIME_FUNCTIONS.traced(sum)(numbers) / count


def _spread(plain: Any, missing: int, root: bool) -> Callable[..., Any]:
    def spread(control: Flow, items: Any, *centre: Any) -> Any:
        numbers = RUNTIME_FUNCTIONS.traced(list)(items)
        if centre or not _is_heap_of_traced(control, numbers):
            return plain(numbers, *centre)
        mean = _mean(control, numbers)
        squares = RUNTIME_FUNCTIONS.comprehension(numbers, lambda each: (each - mean) * (each - mean), False)
        found = RUNTIME_FUNCTIONS.traced(sum)(squares) / (RUNTIME_FUNCTIONS.traced(len)(numbers) - missing)
        return RUNTIME_FUNCTIONS.traced(math.sqrt)(found) if root else found

    return spread


for _plain, _missing, _root in (
    (statistics.variance, 1, False),
    (statistics.pvariance, 0, False),
    (statistics.stdev, 1, True),
    (statistics.pstdev, 0, True),
):
    traced_for(_plain)(_spread(_plain, _missing, _root))


def _itself(value: Any) -> Any:
    return value


def _nothing(*_: Any) -> None:
    return None
