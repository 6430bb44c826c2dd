"""Merging what two arms did to containers and to tensors that were there before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from trueport.capture.joins.merging import Merging
from trueport.capture.recording.writes import Write
from trueport.capture.values.stores import ContainerChange


def merged_contents(
    merging: Merging, then: Sequence[ContainerChange], orelse: Sequence[ContainerChange]
) -> list[tuple[Any, Any]]:
    """The contents of containers that an arm changed: item by item where both have the same items."""
    both = _both(then, orelse, lambda change: change.container)
    return [(change.container, change.store.joined(merging, a, b, change)) for change, a, b in both]


def merged_writes(
    merging: Merging, then: Sequence[Write], orelse: Sequence[Write]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Tensors that an arm wrote in place: their merged values."""
    value = merging.tracer.value
    both = _both(then, orelse, lambda write: write.base)
    return [(w.base, merging.yielded(merging.kind_of(w.before), value(a), value(b))) for w, a, b in both]


def _both(then: Sequence[Any], orelse: Sequence[Any], key: Callable[[Any], Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Each change of something that an arm changed, and what both arms left there."""
    one, other = ({id(key(change)): change for change in changes} for changes in (then, orelse))
    for at in {**one, **other}:
        change = one.get(at) or other[at]
        yield change, *(side[at].after if at in side else change.before for side in (one, other))
