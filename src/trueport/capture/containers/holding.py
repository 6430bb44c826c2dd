"""What a list of rewritten code holds, while its number of items is plain, and once it is open."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import torch

from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.rows import NotAlike, Rows, numbers_in
from trueport.capture.containers.sequences import HANDS_IT_ON, OpenSequence, StandIn, refuse
from trueport.capture.stops.places import code_that_calls
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import TracedContainer
from trueport.source import Place


class HoldingList(list, TracedContainer):  # type: ignore[type-arg]
    """A list that holds its items itself, or, while their number is open, in parts."""

    stands_for: type = list
    """torch's functions give tuples."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._parts: ListParts | None = None
        self.place: Place | None = None
        """Where its length was left open."""
        self.one_of_two: Disagreement | None = None
        """Set where it stands for one or the other of two lists, which a change of it would not reach."""
        self.before_change: list[Callable[[], None]] = []
        """What others do about it, who may be the same list, and whom a change of it would not reach."""

    @property
    def is_open(self) -> bool:
        return self._parts is not None

    @property
    def held(self) -> ListParts:
        return self._parts if self._parts is not None else ListParts.plain(list.__iter__(self))

    @classmethod
    def of(cls, parts: ListParts) -> Self:
        made = cls()
        made.hold(parts)
        return made

    @classmethod
    def of_rows(cls, rows: Rows) -> Self:
        return cls.of(ListParts((rows,)))

    @classmethod
    def of_numbers(cls, tensor: torch.Tensor) -> Self:
        """What `tensor.tolist()` gives, where the length of the first axis is open: numbers, or lists of numbers."""
        return cls.of_rows(numbers_in(tensor))

    def hold(self, parts: ListParts) -> None:
        """Make it hold this."""
        items = parts.items
        list.clear(self)
        if items is None:
            list.append(self, StandIn.of(self))
            self._parts = parts
        else:
            list.extend(self, items)
            self._parts = None

    @property
    def length(self) -> Any:
        return self.held.length

    def rows(self) -> Rows:
        """All items as rows, which it then holds: they are put together once."""
        with self.alike():
            rows = self.held.rows()
        if self._parts is not None:
            self._parts = ListParts((rows,))
        return rows

    @contextlib.contextmanager
    def alike(self) -> Iterator[None]:
        """For what needs items that one set of columns can hold."""
        try:
            yield
        except NotAlike:
            refuse(
                "a list whose length is known only when the model runs holds items of different kinds, or of sizes that"
                " differ in a way that this cannot follow",
                "put tensors of one dtype and number of axes into it",
            )
            raise

    def whole(self) -> torch.Tensor:
        """All items along a new first axis."""
        return self.held.whole()

    def as_numbers(self) -> torch.Tensor:
        """What `torch.tensor` makes of its items, which are numbers, or lists and tuples of numbers."""
        rows = self.rows()
        with self.alike():
            return rows.table() if rows.is_table else self.whole()

    def joined(self, axis: int) -> torch.Tensor:
        """All items along one of their own axes."""
        with self.alike():
            return self.held.joined(axis)

    def lengths(self, axis: int) -> torch.Tensor:
        """How long each item is along one of its axes."""
        column, tensors = self.rows().only
        return column.lengths(tensors, axis)

    @property
    def rank(self) -> int:
        """The number of axes of its items."""
        return len(self.rows().only[0].sizes)

    def holds(self, item: Any) -> Any:
        return (self.whole() == item).any().item() if self.is_open else None

    def sequence(self) -> OpenSequence | None:
        if not self.is_open:
            return None
        rows = self.rows()
        return OpenSequence(rows.length, rows.at)

    def _about_to_change(self) -> None:
        if self.one_of_two is not None:
            self.one_of_two.complain()
        for others in self.before_change:
            others()

    def __iter__(self) -> Any:
        if self._parts is None or code_that_calls(__file__) in HANDS_IT_ON:
            return list.__iter__(self)
        return iter(OpenSequence(self.length, self.__getitem__))

    def __len__(self) -> int:
        if self._parts is None or code_that_calls(__file__) in HANDS_IT_ON:
            return list.__len__(self)
        return int(
            refuse("the length of this list is known only when the model runs", "ask for it in the model's own code")
        )
