"""Merging what two arms did to containers and to tensors that were there before them."""

from __future__ import annotations

from typing import Any

import torch

from trueport.capture.joins.merging import Merging
from trueport.capture.recording.writes import Write
from trueport.capture.values.stores import ContainerChange


def merged_contents(
    merging: Merging, then: tuple[ContainerChange, ...], orelse: tuple[ContainerChange, ...]
) -> list[tuple[Any, Any]]:
    """The contents of containers that an arm changed: item by item where both have the same items."""
    one = {id(c.container): c for c in then}
    other = {id(c.container): c for c in orelse}
    merged = []
    for key in {**one, **other}:
        change = one.get(key) or other[key]
        a = one[key].after if key in one else change.before
        b = other[key].after if key in other else change.before
        merged.append((change.container, change.store.joined(merging, a, b, change)))
    return merged


def merged_writes(
    merging: Merging, then: tuple[Write, ...], orelse: tuple[Write, ...]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Tensors that an arm wrote in place: their merged values."""
    tracer = merging.tracer
    one = {id(w.base): w for w in then}
    other = {id(w.base): w for w in orelse}
    merged = []
    for key in {**one, **other}:
        write = one.get(key) or other[key]
        a = one[key].after if key in one else write.before
        b = other[key].after if key in other else write.before
        base = write.base
        result = merging.tensor(tracer.value(a), tracer.value(b), base.dtype, list(write.before.shape), base.device)
        merged.append((base, result))
    return merged
