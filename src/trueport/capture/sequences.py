"""Sequences whose length is known only when the model runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from trueport.diagnostics.rules.tp104_open_length import OpenLength
from trueport.errors import ExportError
from trueport.rewrite.runtime import TRACE


def refuse(what: str, fix: str) -> Any:
    """Something is done to an open sequence that only rewritten code may do, or that nobody may."""
    if TRACE.trace is not None:
        TRACE.trace.rewrite_caller()
    raise ExportError([OpenLength(message=what, fix=fix)])


@dataclass(frozen=True)
class OpenSequence:
    """`length` items, of which `at(i)` makes the one with a traced index: a range, the rows of a tensor, a zip."""

    length: Any
    at: Callable[[Any], Any]

    def __iter__(self) -> Any:
        return refuse(
            "this code goes through something whose length is known only when the model runs",
            "go through it with a `for` loop in the model's own Python code",
        )

    def __len__(self) -> int:
        return int(
            refuse("the length of this is known only when the model runs", "use len(...) in the model's own code")
        )


class _Item(torch.Tensor):
    """Stands in a GrownList for all its items: whoever reads it as a tensor is told that it is none."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return refuse(
            f"`{getattr(func, '__name__', func)}` is given a list whose length is known only when the model runs",
            "stack or concatenate the list first: torch.stack(items)",
        )


_ITEM = torch.empty(0).as_subclass(_Item)


@dataclass
class GrownList(list):  # type: ignore[type-arg]
    """A Python list after a loop of traced length appended to it: `head`, then `count` items stacked, then `tail`.

    It is a list only so that torch.stack and torch.cat, which look at the type, reach us with it.
    """

    head: list[Any]
    stacked: torch.Tensor | None
    count: Any
    tail: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        list.append(self, _ITEM)

    @property
    def is_open(self) -> bool:
        """Whether a loop is just appending to it."""
        return self.stacked is None

    @property
    def length(self) -> Any:
        return len(self.head) + self.count + len(self.tail)

    def append(self, item: Any) -> None:
        self.tail.append(item)

    def extend(self, items: Any) -> None:
        self.tail.extend(items)

    def whole(self) -> torch.Tensor:
        """All items along a new first axis."""
        if self.stacked is None:
            return torch.as_tensor(
                refuse(
                    "a list is read while a loop of traced length appends to it",
                    "keep what you need in a name of its own",
                )
            )
        parts = [torch.stack(self.head)] if self.head else []
        parts.append(self.stacked)
        parts += [torch.stack(self.tail)] if self.tail else []
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def joined(self, axis: int) -> torch.Tensor:
        """All items concatenated along an axis."""
        if self.stacked is None:
            return self.whole()
        rank = self.stacked.dim() - 1
        axis = axis % rank
        merged = self.stacked.movedim(0, axis).flatten(axis, axis + 1)
        parts = [*self.head, merged, *self.tail]
        return torch.cat(parts, axis) if len(parts) > 1 else merged

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and 0 <= index < len(self.head):
            return self.head[index]
        if isinstance(index, int) and index < 0 and -index <= len(self.tail):
            return self.tail[index]
        return self.whole()[index]

    def __iter__(self) -> Any:
        return iter(OpenSequence(self.length, self.__getitem__))

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other
