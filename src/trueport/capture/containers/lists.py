"""Python lists that a branch or a loop of traced length may leave with an open number of items.

A list that rewritten code makes is one of these. It is a list like any other until two arms leave it with different
lengths, or a loop adds to it; from then on it is a row of parts, plain items and `Rows` in turn. Items are put into
tensors only when somebody reads them: a list that a loop only appends to costs one scanned output.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import torch

from trueport.capture.containers.parts import ListParts as ListParts
from trueport.capture.containers.parts import Part as Part
from trueport.capture.containers.parts import PlainItems, bounds_of, spliced
from trueport.capture.containers.rows import ItemShape, NoRows, NotAlike, Rows, numbers_in
from trueport.capture.containers.sequences import HANDS_IT_ON, OpenSequence, StandIn, refuse, turned
from trueport.capture.stops.places import code_that_calls
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import (
    ContainerChange,
    Join,
    TracedContainer,
    TracedStore,
    first_out_of_date,
    store_for,
)
from trueport.decompositions.indexing import bounds, plain_slice, within
from trueport.rewrite.running.asking import fails_unless
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.source import Place
from trueport.torch_internals.symbolic import counted, is_symbolic, is_traced, plain_number


class Unfilled(IndexError):
    """An item of an empty list is asked for, in a loop that may have filled it in an earlier round."""


class TracedList(list, TracedContainer):  # type: ignore[type-arg]
    """A list of rewritten code: it holds its items itself or, while their number is open, in parts (`held`)."""

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

    # --- what Python does to a list

    def columns(self) -> tuple[TracedList, ...] | None:
        """`zip(*items)` of lists or tuples of one length: the first of all items, the second of all, and so on."""
        rows = self.rows()
        parts = rows.shape.structure.items()
        if parts is None:
            return None
        if TRACE.trace is not None:  # of nothing, `zip` gives nothing at all
            TRACE.trace.check(rows.length > 0, ValueError)
        made, found = [], iter(rows.columns())
        for part in parts:
            columns = list(itertools.islice(found, part.count))
            shape = ItemShape(part, tuple(column for column, _ in columns))
            made.append(TracedList.of_rows(Rows(shape, tuple(t for _, tensors in columns for t in tensors))))
            made[-1].stands_for, made[-1].place = tuple, self.place
        return tuple(made)

    def append(self, item: Any) -> None:
        self.extend([item])

    def extend(self, items: Iterable[Any]) -> None:
        self._about_to_change()
        if not isinstance(items, (list, tuple)):  # the rows of a tensor, a range, a zip
            items = RUNTIME_FUNCTIONS.traced(list)(items)
        if self._parts is None and not is_open(items):
            list.extend(self, items)
        else:
            self.place = self.place or getattr(items, "place", None)
            self.hold(self.held.then(held_in(items)))

    def __iadd__(self, items: Any) -> TracedList:
        self.extend(items)
        return self

    def __add__(self, items: Any) -> TracedList:
        both = self.copy()
        both.extend(items)
        return both

    def __radd__(self, items: Any) -> Any:
        """`[first] + rest`, in code that was not rewritten: Python's own would take what stands for the items."""
        if not isinstance(items, (list, tuple)):
            return NotImplemented
        return self._shown_as_this(TracedList.of(ListParts.plain(items).then(self.held)))

    def __mul__(self, times: Any) -> Any:
        times = counted(plain_number(times))
        if self._parts is None:
            return _repeated(self, times) if is_symbolic(times) else self.holding(ListParts.plain([*self] * times))
        if is_symbolic(times):
            refuse("a list of open length is repeated as a traced number says", "repeat the stacked tensor instead")
        return TracedList.of(functools.reduce(ListParts.then, [self.held] * times, ListParts.plain(())))

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> TracedList:
        self._about_to_change()
        self.hold(held_in(self * times))
        return self

    def copy(self) -> TracedList:
        return self._shown_as_this(self.holding(self.held))

    __copy__ = copy

    def _shown_as_this(self, made: TracedList) -> TracedList:
        """A list that was made of this one is to the user what this one is."""
        made.stands_for, made.place = self.stands_for, self.place
        return made

    def clear(self) -> None:
        self._about_to_change()
        self.hold(ListParts.plain(()))

    def pop(self, index: Any = -1) -> Any:
        self._about_to_change()
        if self._parts is None and not is_traced(index):
            if not list.__len__(self):
                self._unfilled()
            return list.pop(self, index)
        if self.is_open:
            fails_unless(lambda: self.length > 0, IndexError)
        item = self[index]
        last = self.held.parts[-1]
        if index == -1 and last.plain is not None:
            self.hold(ListParts((*self.held.parts[:-1], PlainItems(last.plain[:-1]))))
            return item
        self._splice(index, ListParts.plain(()))
        return item

    def _splice(self, index: Any, new: ListParts) -> None:
        """Other items in the place of one, or of those in a slice."""
        if isinstance(index, slice) and index.step not in (None, 1):
            refuse("every so many items of a list of open length are changed", "make a new list: [… for item in items]")
        count = self.length
        with self.alike():
            parts = spliced(self.held, *bounds_of(index, count), new)
        if self.is_open or isinstance(index, slice):
            self.hold(parts)
        else:
            self.hold(ListParts.plain(parts.rows().exactly(count - 1)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        if self._parts is None and not isinstance(index, (torch.SymInt, torch.Tensor)):
            if not list.__len__(self):
                self._unfilled()
            return list.__getitem__(self, index)
        if not is_traced(index):
            edge = self.held.parts[0 if index >= 0 else -1].plain or ()
            if -len(edge) <= index < len(edge):
                return edge[index]
        if self._parts is None and not list.__len__(self):
            self._unfilled()
        fails_unless(lambda: within(index, self.length), IndexError)
        return self.rows().at(index)

    def _unfilled(self) -> None:
        if TRACE.trace is not None:
            raise Unfilled("list index out of range")

    def _slice(self, index: slice) -> Any:
        index = plain_slice(index)
        if self._parts is None and not any(map(is_symbolic, (index.start, index.stop))):
            return TracedList(list.__getitem__(self, index))
        if index.step == -1 and index.stop == -1:
            return TracedList()
        if index.step == -1 and (forwards := turned(index)) is not None:
            backwards = self.copy() if forwards == slice(None) else self[forwards]
            backwards.reverse()
            return backwards
        if is_symbolic(index.step) or (index.step is not None and index.step < 1):
            return refuse("every so many items of a list of open length are taken", "slice the stacked tensor instead")
        with self.alike():
            part = self.rows().part(index.start, index.stop)
        return self._shown_as_this(TracedList.of_rows(part) if index.step in (None, 1) else _every(part, index.step))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._about_to_change()
        if self._parts is None and not is_traced(index):
            list.__setitem__(self, index, value)
        elif not isinstance(index, slice):
            self._replace(plain_number(index), value)
        else:
            self._splice(index, held_in(RUNTIME_FUNCTIONS.traced(list)(value)))

    def __delitem__(self, index: Any) -> None:
        self._about_to_change()
        if self._parts is None and not _is_traced(index):
            list.__delitem__(self, index)
            return
        if not isinstance(index, slice):
            fails_unless(lambda: within(index, self.length), IndexError)
        self._splice(index, ListParts.plain(()))

    def _replace(self, index: Any, value: Any) -> None:
        """Another item at a traced place, or in a list of open length."""
        if TRACE.trace is not None:
            TRACE.trace.put_back(value)
        try:
            rows = self.held.rows()
            items = rows.with_item(index, value)
            self.hold(ListParts((items,)) if self.is_open else ListParts.plain(items.exactly(list.__len__(self))))
        except NotAlike:
            if self.is_open:  # an item of another size than the others
                self._splice(index, ListParts.plain([value]))
                return
            count, before = list.__len__(self), list(list.__iter__(self))
            for i, item in enumerate(before):
                here = (index == i) | (index == i - count)
                kept = RUNTIME_FUNCTIONS.ternary(here, lambda: value, lambda item=item: item)  # type: ignore[misc]
                list.__setitem__(self, i, kept)

    def __bool__(self) -> bool:
        return len(self) > 0

    def reverse(self) -> None:
        self._about_to_change()
        if self._parts is None:
            list.reverse(self)
            return
        rows = self.rows()
        try:
            self.hold(ListParts((rows.backwards(),)))
        except NotAlike:
            self.hold(OpenSequence(rows.length, lambda i: rows.at(rows.length - 1 - i)).collected().held)

    def _refused(self, *_: Any, **__: Any) -> Any:
        return refuse(
            "this needs to know each item of a list whose length is known only when the model runs",
            "stack the list and work on the tensor: torch.stack(items)",
        )

    def __contains__(self, item: object) -> bool:
        return list.__contains__(self, item) if self._parts is None else bool(self._refused())

    def insert(self, index: Any, item: Any) -> None:
        self._about_to_change()
        if self._parts is None and not _is_traced(index):
            list.insert(self, index, item)
        elif not is_traced(index) and index == 0:
            self.hold(ListParts.plain([item]).then(self.held))
        else:
            self._splice(slice(index, index), ListParts.plain([item]))

    def sort(self, **options: Any) -> None:
        self._about_to_change()
        self.hold(held_in(RUNTIME_FUNCTIONS.traced(sorted)(self, **options)))

    def remove(self, item: Any) -> None:
        self._about_to_change()
        list.remove(self, item) if self._parts is None else self._splice(self.index(item), ListParts.plain(()))

    def index(self, *args: Any) -> Any:
        if self._parts is None:
            return RUNTIME_FUNCTIONS.traced([*list.__iter__(self)].index)(*args)
        if len(args) > 1:
            return self._refused()
        here = self._numbers() == args[0]
        fails_unless(lambda: here.any().item(), ValueError)
        return here.to(torch.int64).argmax().item()

    def count(self, item: Any) -> Any:
        if self._parts is None:
            return RUNTIME_FUNCTIONS.traced([*list.__iter__(self)].count)(item)
        return (self._numbers() == item).sum().item()

    def _numbers(self) -> torch.Tensor:
        """All items, which are Python numbers: tensors are not compared by their values alone."""
        column, tensors = self.rows().only
        return self._refused() if column.number is None else tensors[0]

    def __eq__(self, other: object) -> Any:
        if self is other or not isinstance(other, list):
            return self is other
        if self._parts is None and not is_open(other):
            return list.__eq__(self, other)
        if not all(map(list.__len__, (self, other))):
            return self.length == 0 if self.is_open else TracedList.of(held_in(other)).length == 0
        return torch.equal(self._numbers(), TracedList.of(held_in(other))._numbers())

    def __ne__(self, other: object) -> Any:
        return RUNTIME_FUNCTIONS.not_(self == other)

    def __lt__(self, other: Any) -> Any:
        return list.__lt__(self, other) if not (self.is_open or is_open(other)) else self._refused()

    def __reversed__(self) -> Any:
        return list.__reversed__(self) if self._parts is None else iter(OpenSequence(self.length, self.__getitem__))

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (list, (list(self),))


def _every(rows: Rows, step: int) -> TracedList:
    """The first of each `step` items."""
    picked = OpenSequence((rows.length + step - 1) // step, lambda i: rows.at(i * step))
    return TracedList.of(picked.collected().held)


def _is_traced(index: Any) -> bool:
    return is_traced(index) or any(map(is_traced, bounds(index)))


def held_in(items: Iterable[Any]) -> ListParts:
    return items.held if isinstance(items, TracedList) else ListParts.plain(items)


@store_for(TracedList)
class TracedListStore(TracedStore):
    def hold(self, container: Any, content: Any) -> None:
        container.hold(content if isinstance(content, ListParts) else ListParts.plain(content))

    def same(self, container: Any, content: Any) -> bool:
        return bool(container.held.same_as(content))

    def parts(self, content: Any) -> Iterable[Any]:
        """Items, and `Rows` where their number is open."""
        return [each for part in content.parts for each in part.held]

    def followed(self, container: Any, plain: Any) -> Any:
        return container.holding(ListParts.plain(plain)) if type(plain) in (list, deque) else plain

    def apart(self, content: Any, is_written: Callable[[torch.Tensor], bool]) -> Any:
        return content.apart(is_written)

    def joined(self, join: Join, then: Any, orelse: Any, change: ContainerChange) -> Any:
        change.container.place = change.container.place or join.place
        return join.merged_parts(then, orelse, "a list")

    def spoiled(self, container: Any, why: Disagreement) -> Any:
        return ListParts((NoRows(why),))

    def why_spoiled(self, content: Any) -> Disagreement | None:
        lost: NoRows | None = content.lost
        return first_out_of_date(content.items or ()) if lost is None else lost.why


def is_open(value: Any) -> bool:
    return isinstance(value, TracedList) and value.is_open


def _repeated(items: TracedList, times: Any) -> TracedList:
    """`[0.0] * n` for a traced n, of which one below 0 counts as 0."""
    rows, times = items.rows(), torch.sym_max(times, 0)
    if any(column.is_packed for column in rows.shape.columns):
        refuse("a list of items of different sizes is repeated as a traced number says", "expand a tensor instead")
    repeated = [tensor.expand(times, *tensor.shape).flatten(0, 1) for tensor in rows.tensors]
    return TracedList.of_rows(Rows(rows.shape, tuple(repeated)))
