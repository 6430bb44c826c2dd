"""What a list holds whose number of items may be open: plain items and `Rows` in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from trueport.capture.containers.rows import ItemShape, NoRows, NotAlike, Rows, common_shape, held_together
from trueport.rewrite.running.runtime import TRACE
from trueport.torch_internals import FunctionalTensor

Part: TypeAlias = tuple[Any, ...] | Rows


@dataclass(frozen=True, eq=False)
class ListParts:
    """What a list holds: plain items, and rows whose number is open, in their order."""

    parts: tuple[Part, ...]

    @classmethod
    def plain(cls, items: Iterable[Any]) -> ListParts:
        return cls((tuple(items),))

    @property
    def items(self) -> tuple[Any, ...] | None:
        """The items of a plain list; None where their number is open."""
        if any(isinstance(part, Rows) for part in self.parts):
            return None
        return tuple(item for part in self.parts for item in part)  # type: ignore[union-attr]

    @property
    def length(self) -> Any:
        return sum(part.length if isinstance(part, Rows) else len(part) for part in self.parts)

    @property
    def lost(self) -> NoRows | None:
        """The part that nobody may look at, in a list that is out of date."""
        return next((part for part in self.parts if isinstance(part, NoRows)), None)

    def plus(self, items: Iterable[Any]) -> ListParts:
        *before, last = self.parts or ((),)
        added = tuple(items)
        if isinstance(last, Rows):
            return ListParts((*self.parts, added)) if added else self
        return ListParts((*before, (*last, *added)))

    def then(self, other: ListParts) -> ListParts:
        whole = self
        for part in other.parts:
            whole = ListParts((*whole.parts, part)) if isinstance(part, Rows) else whole.plus(part)
        return whole

    def same_as(self, other: ListParts) -> bool:
        """Whether nothing was changed."""
        return len(self.parts) == len(other.parts) and all(map(_same_part, self.parts, other.parts))

    def alike(self, other: ListParts) -> bool:
        """Whether both have the same number of parts and of plain items in each."""
        return len(self.parts) == len(other.parts) and all(map(_alike, self.parts, other.parts))

    def apart(self, is_written: Callable[[torch.Tensor], bool]) -> ListParts:
        """The same items; copies of those tensors that the list shares with somebody who writes them."""
        parts = []
        for part in self.parts:
            parts.append(part if isinstance(part, Rows) else tuple(_apart(item, is_written) for item in part))
        return ListParts(tuple(parts))

    def shape(self, is_inner: Callable[[Any], bool]) -> ItemShape | None:
        """What its items are made of; None where there are none. Raises NotAlike where they differ."""
        held = [part for part in self.parts if holds_items(part)]
        own = (part.shape if isinstance(part, Rows) else ItemShape.of(part, is_inner) for part in held)
        return common_shape(own) if held else None

    def rows(self, shape: ItemShape | None = None) -> Rows:
        """All items in one set of columns."""
        shape = shape or self.shape(no_size)
        if shape is None:
            raise NotAlike
        made = [
            part.onto(shape) if isinstance(part, Rows) else shape.rows(part) for part in self.parts if holds_items(part)
        ]
        if not made:
            return shape.rows(())
        whole = made[0]
        for more in made[1:]:
            whole = whole.followed_by(more)
        return whole

    def whole(self) -> torch.Tensor:
        """All items along a new first axis."""
        stacked = [_stacked(part) for part in self.parts if holds_items(part)]
        return torch.cat(stacked) if len(stacked) > 1 else _copied(stacked[0])

    def joined(self, axis: int) -> torch.Tensor:
        """All items along one of their own axes."""
        pieces: list[torch.Tensor] = []
        for part in self.parts:
            pieces += [part.only[0].joined(part.only[1], axis)] if isinstance(part, Rows) else part
        return torch.cat(pieces, axis) if len(pieces) > 1 else _copied(pieces[0])


def _apart(item: Any, is_written: Callable[[torch.Tensor], bool]) -> Any:
    return held_together(item.clone(), [item]) if isinstance(item, FunctionalTensor) and is_written(item) else item


def holds_items(part: Part) -> bool:
    return isinstance(part, Rows) or bool(part)


def _same_part(one: Part, other: Part) -> bool:
    if isinstance(one, Rows) or isinstance(other, Rows):
        return one is other
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _alike(one: Part, other: Part) -> bool:
    if isinstance(one, Rows) and isinstance(other, Rows):
        return one.shape.structure.same_as(other.shape.structure) and one.shape.same_as(other.shape)
    return isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)


def no_size(_: Any) -> bool:
    return False


def _copied(tensor: torch.Tensor) -> Any:
    """What `stack` and `cat` give is nobody else's, whatever is written to it."""
    return tensor if TRACE.trace is None else TRACE.trace.copied(tensor)


def _stacked(part: Part) -> torch.Tensor:
    try:
        if isinstance(part, Rows):
            column, tensors = part.only
            return column.whole(tensors)
        column, tensors = ItemShape.of(part, no_size).rows(part).only
    except NotAlike:
        return torch.stack(part)  # type: ignore[arg-type]
    return tensors[0]
