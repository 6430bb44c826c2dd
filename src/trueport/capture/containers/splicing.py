"""Changes in the middle of a list of open length: what lies before, something else, what lies after."""

from __future__ import annotations

from typing import Any

import torch

from trueport.capture.containers.parts import ListParts, Part, PlainItems
from trueport.capture.containers.rows import Rows
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals.releases import either
from trueport.torch_internals.symbolic import is_symbolic, plain_number, same_number


def number_of(index: Any, count: Any) -> Any:
    """The number of the item that an index means: a negative one counts from the end."""
    index = plain_number(index)
    if not is_symbolic(index):
        return index if index >= 0 else count + index
    trace = TRACE.trace
    from_the_end = index < 0 if trace is None else trace.truth(index < 0)
    return index if from_the_end is False else either(from_the_end, index + count, index)


def bounds_of(index: Any, count: Any) -> tuple[Any, Any]:
    """Where one item, or the items of a slice, begin and end: both lie in the list, in this order."""
    if not isinstance(index, slice):
        start = number_of(index, count)
        return start, start + 1
    start, stop = (
        edge if bound is None else torch.sym_min(torch.sym_max(number_of(bound, count), 0), count)
        for bound, edge in ((index.start, 0), (index.stop, count))
    )
    return start, torch.sym_max(start, stop)


def spliced(items: ListParts, start: Any, stop: Any, new: ListParts) -> ListParts:
    """The items before `start`, the new ones, and those from `stop` on."""
    rows = items.rows()
    return ListParts((_part(rows, None, start),)).then(new).then(ListParts((_part(rows, stop, None),)))


def _part(rows: Rows, start: Any, stop: Any) -> Part:
    return PlainItems() if same_number(stop, 0) else rows.part(start, stop)
