"""What a list holds whose number of items may be open: plain items and `Rows` in turn.

Both are parts, and answer the same questions; nobody asks which of them a part is.
A change in the middle of such a list is what lies before, something else, and what lies after.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from trueport.capture.containers.rows import ItemShape, NoRows, NotAlike, Rows, held_together
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals import FunctionalTensor
from trueport.torch_internals.releases import either
from trueport.torch_internals.symbolic import is_symbolic, plain_number, same_number


class PlainItems(tuple[Any, ...]):
    """Items whose number is plain."""

    @property
    def plain(self) -> tuple[Any, ...] | None:
        return self

    @property
    def held(self) -> Iterable[Any]:
        return self

    @property
    def within(self) -> Sequence[Any]:
        return self

    @property
    def length(self) -> Any:
        return len(self)

    def mapped(self, function: Callable[[Any], Any]) -> PlainItems:
        return PlainItems(map(function, self))

    def same_as(self, other: Part) -> bool:
        return other.plain is not None and len(self) == len(other.plain) and all(map(operator.is_, self, other.plain))

    def alike(self, other: Part) -> bool:
        return other.plain is not None and len(self) == len(other.plain)

    def item_shape(self, is_inner: Callable[[Any], bool]) -> ItemShape | None:
        return ItemShape.of(self, is_inner) if self else None

    def onto(self, shape: ItemShape) -> Rows:
        return shape.rows(self)

    def stacked(self) -> torch.Tensor:
        try:
            return ItemShape.of(self, no_size).rows(self).only[1][0]
        except NotAlike:
            return torch.stack(self)

    def along(self, axis: int) -> Sequence[torch.Tensor]:
        return self


Part: TypeAlias = PlainItems | Rows


@dataclass(frozen=True, eq=False)
class ListParts:
    """What a list holds: plain items, and rows whose number is open, in their order."""

    parts: tuple[Part, ...]

    @classmethod
    def plain(cls, items: Iterable[Any]) -> ListParts:
        return cls((PlainItems(items),))

    @property
    def items(self) -> tuple[Any, ...] | None:
        """The items of a plain list; None where their number is open."""
        if any(part.plain is None for part in self.parts):
            return None
        return tuple(item for part in self.parts for item in part.held)

    @property
    def length(self) -> Any:
        return sum(part.length for part in self.parts)

    @property
    def within(self) -> list[Any]:
        """The plain items, and the tensors that hold the others."""
        return [each for part in self.parts for each in part.within]

    @property
    def lost(self) -> NoRows | None:
        """The part that nobody may look at, in a list that is out of date."""
        return next((part for part in self.parts if isinstance(part, NoRows)), None)

    def plus(self, items: Iterable[Any]) -> ListParts:
        *before, last = self.parts or (PlainItems(),)
        added = PlainItems(items)
        if last.plain is None:
            return ListParts((*self.parts, added)) if added else self
        return ListParts((*before, PlainItems((*last.plain, *added))))

    def then(self, other: ListParts) -> ListParts:
        whole = self
        for part in other.parts:
            whole = ListParts((*whole.parts, part)) if part.plain is None else whole.plus(part.plain)
        return whole

    def mapped(self, function: Callable[[Any], Any]) -> ListParts:
        """With what a function makes of each item that is plain."""
        return ListParts(tuple(part.mapped(function) for part in self.parts))

    def same_as(self, other: ListParts) -> bool:
        """Whether nothing was changed."""
        return len(self.parts) == len(other.parts) and all(a.same_as(b) for a, b in self._pairs(other))

    def alike(self, other: ListParts) -> bool:
        """Whether both have the same number of parts and of plain items in each."""
        return len(self.parts) == len(other.parts) and all(a.alike(b) for a, b in self._pairs(other))

    def _pairs(self, other: ListParts) -> Iterable[tuple[Any, Any]]:
        return zip(self.parts, other.parts, strict=True)

    def apart(self, is_written: Callable[[torch.Tensor], bool]) -> ListParts:
        """The same items; copies of those tensors that the list shares with somebody who writes them."""

        def own(item: Any) -> Any:
            shared = isinstance(item, FunctionalTensor) and is_written(item)
            return held_together(item.clone(), [item]) if shared else item

        return self.mapped(own)

    def shape(self, is_inner: Callable[[Any], bool]) -> ItemShape | None:
        """What its items are made of; None where there are none. Raises NotAlike where they differ."""
        shapes = [shape for part in self.parts if (shape := part.item_shape(is_inner)) is not None]
        return functools.reduce(ItemShape.join, shapes) if shapes else None

    def rows(self, shape: ItemShape | None = None) -> Rows:
        """All items in one set of columns."""
        shape = shape or self.shape(no_size)
        if shape is None:
            raise NotAlike
        made = [part.onto(shape) for part in self.parts if part.plain != ()]
        return functools.reduce(Rows.followed_by, made) if made else shape.rows(())

    def whole(self) -> torch.Tensor:
        """All items along a new first axis."""
        return _one([part.stacked() for part in self.parts if part.plain != ()], 0)

    def joined(self, axis: int) -> torch.Tensor:
        """All items along one of their own axes."""
        return _one([piece for part in self.parts for piece in part.along(axis)], axis)


def no_size(_: Any) -> bool:
    return False


def _one(pieces: Sequence[torch.Tensor], axis: int) -> torch.Tensor:
    """Put together. What `stack` and `cat` give is nobody else's, whatever is written to it."""
    if len(pieces) > 1:
        return torch.cat(list(pieces), axis)
    own: torch.Tensor = pieces[0] if TRACE.trace is None else TRACE.trace.copied(pieces[0])
    return own


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
