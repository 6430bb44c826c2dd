"""Parts of `max`, `min` and `sorted` (see `builtin_sequences.py`) that compare two items at a time, and of `iter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import gt, lt
from typing import Any

from trueport.rewrite.ahead import rewritten


@rewritten
def best(items: Any, key: Callable[[Any], Any] | None, largest: bool) -> Any:
    """The first of the items whose key is the largest, or the smallest. Without a key, items come with their ranks."""
    first = items[0]
    found = first if key is None else (first, key(first))
    for item in items[1:]:
        pair = item if key is None else (item, key(item))
        if gt(pair[1], found[1]) if largest else lt(pair[1], found[1]):
            found = pair
    return found[0]


@rewritten
def or_default(function: Callable[..., Any], items: Any, default: Any, options: dict[str, Any]) -> Any:
    return function(items, **options) if len(items) > 0 else default


@rewritten
def in_order(pairs: list[tuple[Any, Any]], reverse: bool) -> list[Any]:
    """Items by their ranks: neighbours are exchanged, as a network of branches."""
    for end in range(len(pairs) - 1, 0, -1):
        for i in range(end):
            left, right = pairs[i], pairs[i + 1]
            if lt(left[1], right[1]) if reverse else gt(left[1], right[1]):
                left, right = right, left
            pairs[i], pairs[i + 1] = left, right
    return [item for item, _ in pairs]


@rewritten
def until(function: Callable[[], Any], sentinel: Any) -> Iterator[Any]:
    """`iter(function, sentinel)`."""
    while True:
        item = function()
        if item == sentinel:
            break
        yield item
