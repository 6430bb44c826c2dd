"""`bisect`: a place in what is in order is as many items as come before it."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from operator import le, lt
from typing import Any

from trueport.capture.python.standing_for import any_traced, stands_for
from trueport.rewrite.ahead import rewritten


@stands_for(bisect.bisect_left, when=any_traced)
def bisect_left(items: Any, item: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None) -> Any:
    return lo + sum(int(lt(each if key is None else key(each), item)) for each in _between(items, lo, hi))


@stands_for(bisect.bisect_right, when=any_traced)
def bisect_right(items: Any, item: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None) -> Any:
    return lo + sum(int(le(each if key is None else key(each), item)) for each in _between(items, lo, hi))


@stands_for(bisect.insort_left, when=any_traced)
def insort_left(items: Any, item: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None) -> None:
    items.insert(bisect_left(items, item if key is None else key(item), lo, hi, key=key), item)


@stands_for(bisect.insort_right, when=any_traced)
def insort_right(
    items: Any, item: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None
) -> None:
    items.insert(bisect_right(items, item if key is None else key(item), lo, hi, key=key), item)


@rewritten
def _between(items: Any, lo: Any, hi: Any) -> Any:
    return items if lo == 0 and hi is None else items[lo:hi]
