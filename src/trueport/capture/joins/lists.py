"""Lists that two arms leave with different items: item by item where both have as many, otherwise open from then on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.containers.lists import ListParts, Part, TracedList, held_in, is_open
from trueport.capture.containers.parts import PlainItems
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows
from trueport.capture.effects.last_values import LastValues
from trueport.load.containers import kind_of_container
from trueport.load.structures import flatten
from trueport.load.trees import container_of

if TYPE_CHECKING:
    from trueport.capture.joins.merging import Merging


def merged_parts_of(merging: Merging, then: Any, orelse: Any, name: str) -> Any:
    """Containers in which there are lists of open length, part by part."""
    one, other = (None if is_open(side) else container_of(side) for side in (then, orelse))
    if one is None or one != other:
        kinds = [kind_of_container(side).__name__ for side in (then, orelse)]
        return merging.disagreement(name, *(f"a {kind}" for kind in kinds))
    pairs = zip(one.steps(), one.open(then), one.open(orelse), strict=True)
    merged = [merging.merge(a, b, f"{name}{step.path}") for step, a, b in pairs]
    return one.fill(one.shell(), merged)


def merged_list(merging: Merging, then: Sequence[Any], orelse: Sequence[Any], name: str) -> TracedList:
    kind = next(items for items in (then, orelse) if isinstance(items, TracedList))
    made = kind.holding(merged_parts(merging, held_in(then), held_in(orelse), name))
    made.place = merging.place
    if kind_of_container(then) is kind_of_container(orelse):
        made.stands_for = kind_of_container(then)
    if merging.was_there(then) or merging.was_there(orelse):
        made.one_of_two = merging.disagreement(name, "one list", "another")
    return made


def merged_parts(merging: Merging, then: ListParts, orelse: ListParts, name: str) -> ListParts:
    lost = then.lost or orelse.lost
    if lost is not None:
        return ListParts((lost,))
    if then.alike(orelse):
        pairs = zip(then.parts, orelse.parts, strict=True)
        return ListParts(tuple(_merged_part(merging, one, other, name) for one, other in pairs))
    try:
        then, orelse = _as_left(merging, then, merging.then_values), _as_left(merging, orelse, merging.else_values)
        shape = _common(then, orelse, merging)
        with merging.inside_then():
            one = then.rows(shape)
        with merging.inside_else():
            other = orelse.rows(shape)
        return ListParts((_merged_rows(merging, one, other, name),))
    except NotAlike:
        lengths = [_length(parts) for parts in (then, orelse)]
        return ListParts.plain([merging.disagreement(name, *lengths)])


def _as_left(merging: Merging, parts: ListParts, values: LastValues) -> ListParts:
    """The items as an arm left them: it may have written tensors that were in the list before it."""

    def now(item: Any) -> Any:
        leaves, structure = flatten(item, "item")
        left = [
            merging.tracer.holding(values[id(value)], value)
            if isinstance(value, torch.Tensor) and id(value) in values
            else value
            for value in (leaf.value for leaf in leaves)
        ]
        return item if all(a is b.value for a, b in zip(left, leaves, strict=True)) else structure.build(left)

    return parts.mapped(now)


def _common(then: ListParts, orelse: ListParts, merging: Merging) -> ItemShape:
    shapes = [parts.shape(lambda size: not merging.is_outer(size)) for parts in (then, orelse)]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        raise NotAlike
    return known[0] if len(known) == 1 else known[0].and_of(known[1])


def _merged_part(merging: Merging, one: Part, other: Part, name: str) -> Part:
    if isinstance(one, Rows) and isinstance(other, Rows):
        return one if one is other else _merged_rows(merging, one, other, name)
    assert not isinstance(one, Rows) and not isinstance(other, Rows)
    return PlainItems(
        merging.merge(a, b, f"item {i} of {name}") for i, (a, b) in enumerate(zip(one, other, strict=True))
    )


def _merged_rows(merging: Merging, one: Rows, other: Rows, name: str) -> Rows:
    pairs = zip(one.read().tensors, other.read().tensors, strict=True)
    return Rows(one.shape, tuple(merging.merge(a, b, name) for a, b in pairs))


def _length(parts: ListParts) -> str:
    return "of open length" if parts.items is None else f"{len(parts.items)} item{'s' * (len(parts.items) != 1)} long"
