"""Functions of `functools`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from trueport.capture.python.standing_for import stands_for


@stands_for(functools.reduce)
def reduce(function: Callable[[Any, Any], Any], items: Iterable[Any], *initial: Any) -> Any:
    if not initial:
        whole = list(items)
        initial, items = (whole[0],), whole[1:]
    value = initial[0]
    for item in items:
        value = function(value, item)
    return value
