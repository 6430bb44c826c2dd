"""`heapq`, where comparisons of traced items decide which place is whose. Heaps are of a few items."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from operator import lt
from typing import Any

from trueport.capture import limits
from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.sequences import refuse
from trueport.capture.python.standing_for import always, any_traced, stands_for
from trueport.capture.recording.flow import Flow
from trueport.rewrite.ahead import rewritten


def _is_of_traced(control: Flow, heap: Any, *items: Any) -> bool:
    """Refuses what is no list that arms may change, of a few items."""
    if not any_traced(control, heap, *items):
        return False
    of_known_length = isinstance(heap, TracedList) and not heap.is_open
    if not of_known_length or len(heap) > limits.ITEMS_IN_A_HEAP:
        full = limits.ITEMS_IN_A_HEAP if of_known_length else None
        refuse("a heap holds traced items, and many of them or an open number", "sort them: torch.sort", full)
    return True


@stands_for(heapq.heappush, when=_is_of_traced)
def heappush(heap: list[Any], item: Any) -> None:
    heap.append(item)
    _move_up(heap, 0, len(heap) - 1)


@stands_for(heapq.heappop, when=_is_of_traced)
def heappop(heap: list[Any]) -> Any:
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    _fill_from_below(heap, 0, 0, last)
    return first


@stands_for(heapq.heapify, when=_is_of_traced)
def heapify(heap: list[Any]) -> None:
    for place in reversed(range(len(heap) // 2)):
        _fill_from_below(heap, place, place, heap[place])


@stands_for(heapq.heapreplace, when=_is_of_traced)
def heapreplace(heap: list[Any], item: Any) -> Any:
    first = heap[0]
    _fill_from_below(heap, 0, 0, item)
    return first


@stands_for(heapq.heappushpop, when=_is_of_traced)
def heappushpop(heap: list[Any], item: Any) -> Any:
    if heap and lt(heap[0], item):
        return heapreplace(heap, item)
    return item


@stands_for(heapq.nsmallest, when=always)
def nsmallest(count: int, items: Iterable[Any], key: Callable[[Any], Any] | None = None) -> list[Any]:
    return list(sorted(items, key=key)[:count])


@stands_for(heapq.nlargest, when=always)
def nlargest(count: int, items: Iterable[Any], key: Callable[[Any], Any] | None = None) -> list[Any]:
    return list(sorted(items, key=key, reverse=True)[:count])


@rewritten
def _move_up(heap: list[Any], start: int, place: int) -> None:
    """Put the item at a place where it belongs on the way up to `start`, which is in order.

    All comparisons come first: with `while` and a place that moves up, the place would be a traced number.
    """
    way = [place]
    while way[-1] > start:
        way.append((way[-1] - 1) >> 1)
    before = [heap[each] for each in way]
    item = before[0]
    comes_first = [lt(item, each) for each in before[1:]]
    for k, each in enumerate(way):
        held = item if k == 0 or comes_first[k - 1] else before[k]
        heap[each] = before[k + 1] if k < len(way) - 1 and comes_first[k] else held


@rewritten
def _fill_from_below(heap: list[Any], start: int, place: int, item: Any) -> None:
    """Move the smaller of the items below up, down to a place below which nothing is; the item goes up from there."""
    below = 2 * place + 1
    if below >= len(heap):
        heap[place] = item
        _move_up(heap, start, place)
    elif below + 1 == len(heap) or lt(heap[below], heap[below + 1]):
        heap[place] = heap[below]
        _fill_from_below(heap, start, below, item)
    else:
        heap[place] = heap[below + 1]
        _fill_from_below(heap, start, below + 1, item)
