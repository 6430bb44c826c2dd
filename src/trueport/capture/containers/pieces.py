"""What `split`, `chunk` and `unbind` give where the axis is free: pieces of a tensor, whose number is open.

They are a list of open length like those that loops fill. A piece is cut out of the tensor when somebody takes it, so a
`for` over them is a loop with a slice in it; only where they are put together with other items are they packed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.containers.lists import TracedList, is_open
from trueport.capture.containers.parts import number_of
from trueport.capture.containers.rows import ItemShape, NotAlike, Rows
from trueport.capture.containers.sequences import OpenSequence
from trueport.decompositions.indexing import cut, get_item
from trueport.torch_internals.symbolic import expr_of, is_symbolic, same_number, shapes_of


@dataclass(frozen=True)
class Cutting:
    """A call of one of them: which axis is cut, by what, and how."""

    tensor: torch.Tensor
    dim: int
    by: Any
    rows: Callable[[torch.Tensor, int, Any], Rows]

    @property
    def is_open(self) -> bool:
        """Whether the number of pieces is known only when the model runs."""
        if self.tensor.dim() == 0 or isinstance(self.by, torch.Tensor):
            return False
        if isinstance(self.by, (list, tuple)):
            return is_open(self.by)
        return any(map(is_symbolic, (self.by, self.tensor.shape[self.dim])))

    def evenly(self) -> list[torch.Tensor] | None:
        """The pieces where they are as many in every run, and all of one size: `x.chunk(3)` of `3 * n` items."""
        if self.tensor.dim() == 0 or not isinstance(self.by, (int, torch.SymInt)):
            return None
        length: Any = self.tensor.shape[self.dim]
        by: Any = self.by
        if self.rows is _chunk:
            count, size = by, length // by
        elif is_symbolic(by) and shapes_of(by).is_never_negative(by - 1):
            count, size = _plain_if_known(length // by), by
        else:
            return None
        if is_symbolic(count) or count < 1 or not same_number(count * size, length):
            return None
        return list(self.tensor.split_with_sizes([size] * count, self.dim))

    def cut(self) -> TracedList:
        made = TracedList.of_rows(self.rows(self.tensor, self.dim % self.tensor.dim(), self.by))
        made.stands_for = tuple
        return made


def _plain_if_known(number: Any) -> Any:
    return int(known) if is_symbolic(number) and (known := expr_of(number)).is_Integer else number


def split(tensor: torch.Tensor, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Cutting:
    return Cutting(tensor, dim, named.get("split_size", split_size_or_sections), _split)


def chunk(tensor: torch.Tensor, chunks: int, dim: int = 0) -> Cutting:
    return Cutting(tensor, dim, chunks, _chunk)


def unbind(tensor: torch.Tensor, dim: int = 0) -> Cutting:
    return Cutting(tensor, dim, None, _unbind)


def _split(tensor: torch.Tensor, dim: int, size: Any) -> Rows:
    """As many pieces as there are of a size, of which the last may be smaller; an empty tensor is one piece."""
    if isinstance(size, TracedList):
        edges = torch.cat([torch.zeros(1, dtype=torch.int64), size.whole().cumsum(0)])
        return Pieces(tensor, dim, Listed(edges), edges.shape[0] - 1)
    length: Any = tensor.shape[dim]
    if same_number(size, 1):
        return Singles(tensor, dim)
    return Pieces(tensor, dim, Even(size), torch.sym_max((length + size - 1) // size, 1))


def _chunk(tensor: torch.Tensor, dim: int, chunks: Any) -> Rows:
    """At most so many pieces; an empty tensor gives all of them, empty."""
    length: Any = tensor.shape[dim]
    size = torch.sym_max((length + chunks - 1) // chunks, 1)
    of_an_empty_one = chunks * (1 - torch.sym_min(length, 1))
    return Pieces(tensor, dim, Even(size), (length + size - 1) // size + of_an_empty_one)


def _unbind(tensor: torch.Tensor, dim: int, _: Any) -> Rows:
    rows = tensor.movedim(dim, 0)
    return Rows(ItemShape.of_tensors(tensor, rows.shape[1:]), (rows,))


class Singles(Rows):
    """Pieces that are one long: they all have one size. (But an empty tensor is one piece in eager, and none here.)"""

    def __init__(self, tensor: torch.Tensor, dim: int) -> None:
        rows = tensor.unsqueeze(dim + 1).movedim(dim, 0)
        super().__init__(ItemShape.of_tensors(tensor, rows.shape[1:]), (rows,))
        self._as_pieces = Pieces(tensor, dim, Even(1), torch.sym_max(tensor.shape[dim], 1))

    def whole_and_lengths(self) -> tuple[torch.Tensor, int, torch.Tensor] | None:
        return self._as_pieces.whole_and_lengths()

    def onto(self, shape: ItemShape) -> Rows:
        return self if shape.same_as(self.shape) else super().onto(shape)


@dataclass(frozen=True)
class Even:
    """Pieces of one size, of which the last may be smaller."""

    size: Any

    def edge(self, number: Any) -> Any:
        """Where the piece with this number begins, and the one before it ends."""
        return number * self.size

    def edges(self, numbers: torch.Tensor) -> torch.Tensor:
        return torch.mul(numbers, self.size)


@dataclass(frozen=True)
class Listed:
    """Pieces whose sizes stood in a list of open length: `at` holds where each begins, and the end of the last."""

    at: torch.Tensor

    def edge(self, number: Any) -> Any:
        return get_item(self.at, number).item()

    def edges(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.at[numbers]


class Pieces(Rows):
    """`count` pieces of a tensor along an axis: those with the numbers first, first + step, …"""

    def __init__(
        self, tensor: torch.Tensor, dim: int, by: Even | Listed, count: Any, first: Any = 0, step: int = 1
    ) -> None:
        sizes = (None if axis == dim else s for axis, s in enumerate(tensor.shape))
        super().__init__(ItemShape.of_tensors(tensor, sizes), ())
        self._tensor, self._dim, self._by, self._count = tensor, dim, by, count
        self._first, self._step = first, step

    @property
    def length(self) -> Any:
        self.read()
        return self._count

    def at(self, index: Any) -> torch.Tensor:
        self.read()
        number = self._first + self._step * number_of(index, self._count)
        return self._cut(self._by.edge(number), self._by.edge(number + 1))

    def _cut(self, start: Any, stop: Any) -> torch.Tensor:
        return cut(self._tensor, self._dim, start, stop)

    def exactly(self, count: int) -> list[torch.Tensor]:
        """All of them, where there are so many: all but the last are whole."""
        if self._first != 0 or self._step != 1:
            return super().exactly(count)
        self.read()
        whole = [self._cut(self._by.edge(i), self._by.edge(i + 1)) for i in range(count - 1)]
        return [*whole, self._cut(self._by.edge(count - 1), None)]

    def part(self, start: Any, stop: Any) -> Rows:
        self.read()
        if is_symbolic(start) or is_symbolic(stop):
            raise NotAlike
        begin = torch.sym_min(start or 0, self._count) if (start or 0) >= 0 else self._count + start
        end = self._count if stop is None else torch.sym_min(stop, self._count) if stop >= 0 else self._count + stop
        count = torch.sym_max(end - begin, 0)
        return Pieces(self._tensor, self._dim, self._by, count, self._first + self._step * begin, self._step)

    def backwards(self) -> Rows:
        last = self._first + self._step * (self.length - 1)
        return Pieces(self._tensor, self._dim, self._by, self._count, last, -self._step)

    def onto(self, shape: ItemShape) -> Rows:
        return self if shape.same_as(self.shape) else Rows(self.shape, self.tensors).onto(shape)

    def whole_and_lengths(self) -> tuple[torch.Tensor, int, torch.Tensor] | None:
        if self._step != 1:
            return None
        self.read()
        number = torch.arange(self._count) + self._first
        edges = [self._by.edges(at).clamp(max=self._tensor.shape[self._dim]) for at in (number, number + 1)]
        taken = self._cut(self._by.edge(self._first), self._by.edge(self._first + self._count))
        return taken, self._dim, edges[1] - edges[0]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """One after the other, with a table of their sizes."""
        self.read()
        if (whole := self.whole_and_lengths()) is None:
            return tuple(OpenSequence(self._count, self.at).collected().held.rows(self.shape).tensors)
        taken, _, lengths = whole
        sizes = [
            lengths if axis == self._dim else torch.full_like(lengths, size)
            for axis, size in enumerate(self._tensor.shape)
        ]
        return taken.movedim(self._dim, 0).reshape(-1), torch.stack(sizes, 1)
