"""Lists that two arms leave with different items: item by item where both have as many, otherwise open from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.containers.lists import ListParts, Part, TracedList, held_in
from trueport.capture.containers.parts import PlainItems
from trueport.capture.containers.rows import NotAlike, Rows, common_shape
from trueport.capture.joins.meeting import inside
from trueport.capture.joins.ways import Arm
from trueport.capture.values.kinds import ONE_LIST, Length, ListKind
from trueport.load.structures import flatten
from trueport.load.trees import container_of
from trueport.rewrite.running.runtime import UNBOUND

if TYPE_CHECKING:
    from trueport.capture.joins.merging import Merging


def merged_parts_of(merging: Merging, then: Any, orelse: Any, name: str) -> Any:
    """Containers in which there are lists of open length, part by part."""
    found = [container_of(side) for side in (then, orelse) if side is not UNBOUND]
    if found[0] is None or found[0] != found[-1]:
        return merging.disagreement(name, *map(merging.kind_of, (then, orelse)))
    steps = found[0].steps()
    parts = ([UNBOUND for _ in steps] if side is UNBOUND else found[0].open(side) for side in (then, orelse))
    merged = [merging.merge(a, b, f"{name}{step.path}") for step, a, b in zip(steps, *parts, strict=True)]
    return found[0].fill(found[0].shell(), merged)


def merged_list(merging: Merging, kind: ListKind, then: Any, orelse: Any, name: str) -> TracedList:
    like: TracedList = next(items for items in (then, orelse) if isinstance(items, TracedList))
    one, other = (_unbound(like.held) if side is UNBOUND else held_in(side) for side in (then, orelse))
    made = like.holding(merged_parts(merging, one, other, name))
    made.place = merging.place
    made.stands_for = kind.made_as
    if merging.was_there(then) or merging.was_there(orelse):
        made.one_of_two = merging.disagreement(name, ONE_LIST)
    return made


def _unbound(other: ListParts) -> ListParts:
    """What stands for a list in the arm that does not bind it."""
    return ListParts(()) if other.items is None else ListParts.plain([UNBOUND for _ in other.items])


def merged_parts(merging: Merging, then: ListParts, orelse: ListParts, name: str) -> ListParts:
    lost = then.lost or orelse.lost
    if lost is not None:
        return ListParts((lost,))
    if then.alike(orelse):
        pairs = zip(then.parts, orelse.parts, strict=True)
        return ListParts(tuple(_merged_part(merging, one, other, name) for one, other in pairs))
    try:
        then, orelse = _as_left(merging, then, merging.then), _as_left(merging, orelse, merging.orelse)
        shape = common_shape(parts.shape(merging.is_in_arm) for parts in (then, orelse))
        with inside(merging.tracer, merging.then.region):
            one = then.rows(shape)
        with inside(merging.tracer, merging.orelse.region):
            other = orelse.rows(shape)
        return ListParts((_merged_rows(merging, one, other, name),))
    except NotAlike:
        lengths = [Length(None if parts.items is None else len(parts.items)) for parts in (then, orelse)]
        return ListParts.plain([merging.disagreement(name, *lengths)])


def _as_left(merging: Merging, parts: ListParts, arm: Arm) -> ListParts:
    """The items as an arm left them: it may have written tensors that were in the list before it."""

    def now(item: Any) -> Any:
        leaves, structure = flatten(item, "item")
        left = [
            merging.tracer.holding(arm.values[id(value)], value)
            if isinstance(value, torch.Tensor) and id(value) in arm.values
            else value
            for value in (leaf.value for leaf in leaves)
        ]
        return item if all(a is b.value for a, b in zip(left, leaves, strict=True)) else structure.build(left)

    return parts.mapped(now)


def _merged_part(merging: Merging, one: Part, other: Part, name: str) -> Part:
    if isinstance(one, Rows) and isinstance(other, Rows):
        return one if one is other else _merged_rows(merging, one, other, name)
    pairs = zip(one.plain or (), other.plain or (), strict=True)
    return PlainItems(merging.merge(a, b, f"item {i} of {name}") for i, (a, b) in enumerate(pairs))


def _merged_rows(merging: Merging, one: Rows, other: Rows, name: str) -> Rows:
    pairs = zip(one.read().tensors, other.read().tensors, strict=True)
    return Rows(one.shape, tuple(merging.merge(a, b, name) for a, b in pairs))
