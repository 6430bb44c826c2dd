"""Merging what two arms did to containers and to tensors that were there before them."""

from __future__ import annotations

from types import CellType
from typing import Any

import torch

from trueport.capture.containers.choices import OpenKey
from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.lists import ListParts
from trueport.capture.containers.sets import TracedSet, Unsure
from trueport.capture.effects.world import ContainerChange
from trueport.capture.joins.dicts import keys_differ, merged_entries
from trueport.capture.joins.lists import merged_parts
from trueport.capture.joins.merging import Merging
from trueport.capture.recording.writes import Write
from trueport.capture.stops.raising import is_handled_here
from trueport.capture.values.disagreement import Disagreement
from trueport.rewrite.running.runtime import UNBOUND


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
        merged.append((change.container, _content(merging, a, b, change)))
    return merged


def _content(merging: Merging, then: Any, orelse: Any, change: ContainerChange) -> Any:
    container = change.container
    if isinstance(container, CellType):
        return merging.merge(then, orelse, "a name of the function around it")
    if isinstance(then, ListParts):
        container.place = container.place or merging.place
        return merged_parts(merging, then, orelse, "a list")
    if isinstance(container, TracedDict):
        container.why = keys_differ(merging)
        return merged_entries(merging, then, orelse)
    if isinstance(then, dict):
        return _merged_dict(merging, then, orelse, change)
    if isinstance(container, TracedSet):
        same = then is orelse or (isinstance(then, set) and isinstance(orelse, set) and then == orelse)
        return then if same else Unsure(Disagreement("a set", "one", "another", merging.place, merging.again))
    if isinstance(then, set):
        if then != orelse:
            Disagreement("a set", "one", "another", merging.place, merging.again).complain()
        return then
    if len(then) != len(orelse):
        merging.tracer.demand.require_makers(
            change.owner, merging.tracer.places, change.container
        )  # there, its length may be open
    if len(then) == len(orelse):
        return [merging.merge(a, b, f"item {i}") for i, (a, b) in enumerate(zip(then, orelse, strict=True))]
    lengths = (f"{len(then)} items long", f"{len(orelse)} items long")
    return [Disagreement(change.name, *lengths, merging.place, merging.again)]


def _merged_dict(
    merging: Merging, then: dict[Any, Any], orelse: dict[Any, Any], change: ContainerChange
) -> dict[Any, Any]:
    """The attributes of an object, or a dict that no rewritten code made."""
    keys = [*then, *(k for k in orelse if k not in then)]
    tracer = merging.tracer
    if then.keys() != orelse.keys():
        if change.are_attributes:
            why = keys_differ(merging, "attribute")
            tracer.one_sided.update({(id(change.container), key): why for key in then.keys() ^ orelse.keys()})
            tracer.demand.require_callers(tracer.places)  # they may ask `hasattr`
            if is_handled_here({"AttributeError"}, tracer.places):
                unsure = dict.fromkeys(then.keys() ^ orelse.keys(), why)
                then, orelse = {**then, **unsure}, {**orelse, **unsure}
        elif all(isinstance(key, OpenKey) for key in then.keys() ^ orelse.keys()):  # harmless until it is asked for
            unsure = dict.fromkeys(then.keys() ^ orelse.keys(), keys_differ(merging))
            then, orelse = {**then, **unsure}, {**orelse, **unsure}
        else:
            tracer.demand.require_makers(change.owner, tracer.places, change.container)
            keys_differ(merging).complain()
    elif list(then) != list(orelse) and not change.are_attributes:
        tracer.demand.require_makers(change.owner, tracer.places, change.container)
        keys_differ(merging).complain()
    return {k: merging.merge(then.get(k, UNBOUND), orelse.get(k, UNBOUND), str(k)) for k in keys}


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
