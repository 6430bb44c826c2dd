"""Python lists that a branch or a loop of traced length may leave with an open number of items.

A list that rewritten code makes is one of these. It is a list like any other until two arms leave it with different
lengths, or a loop adds to it; from then on it is a row of parts, plain items and `Rows` in turn. Items are put into
tensors only when somebody reads them: a list that a loop only appends to costs one scanned output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from trueport.capture.disagreement import Disagreement
from trueport.capture.indexing import within
from trueport.capture.parts import Part as Part
from trueport.capture.parts import Parts as Parts
from trueport.capture.rows import NotAlike, Rows, numbers_in
from trueport.capture.sequences import HANDS_IT_ON, OpenSequence, StandIn, refuse, turned
from trueport.rewrite.runtime import RUNTIME_FUNCTIONS, TRACE
from trueport.source import Place


class Unfilled(IndexError):
    """An item of an empty list is asked for, in a loop that may have filled it in an earlier round."""


class TracedList(list):  # type: ignore[type-arg]
    """A list of rewritten code. While its number of items is open, `parts` hold them."""

    stands_for: type = list
    """What a structure that holds it is told to be: torch's functions give tuples."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._parts: Parts | None = None
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
    def held(self) -> Parts:
        return self._parts if self._parts is not None else Parts.plain(list.__iter__(self))

    @classmethod
    def of(cls, parts: Parts) -> TracedList:
        made = cls()
        made.hold(parts)
        return made

    @classmethod
    def of_numbers(cls, tensor: torch.Tensor) -> TracedList:
        """What `tensor.tolist()` gives, where the length of the first axis is open: numbers, or lists of numbers."""
        return cls.of(Parts((numbers_in(tensor),)))

    def hold(self, parts: Parts) -> None:
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
        try:
            rows = self.held.rows()
        except NotAlike:
            self._mixed()
            raise
        if self._parts is not None:
            self._parts = Parts((rows,))
        return rows

    def _mixed(self) -> Any:
        return refuse(
            "a list whose length is known only when the model runs holds items of different kinds, or of sizes that"
            " differ in a way that this cannot follow",
            "put tensors of one dtype and number of axes into it",
        )

    def whole(self) -> torch.Tensor:
        """All items along a new first axis."""
        return self.held.whole()

    def as_numbers(self) -> torch.Tensor:
        """What `torch.tensor` makes of its items, which are numbers, or lists and tuples of numbers."""
        rows = self.rows()
        try:
            return rows.table() if rows.is_table else self.whole()
        except NotAlike:
            return torch.as_tensor(self._mixed())

    def joined(self, axis: int) -> torch.Tensor:
        """All items along one of their own axes."""
        try:
            return self.held.joined(axis)
        except NotAlike:
            return torch.as_tensor(self._mixed())

    def lengths(self, axis: int) -> torch.Tensor:
        """How long each item is along one of its axes."""
        column, tensors = self.rows().only
        return column.lengths(tensors, axis)

    @property
    def rank(self) -> int:
        """The number of axes of its items."""
        return len(self.rows().only[0].sizes)

    def sequence(self) -> OpenSequence:
        """Its items, to be gone through by a loop."""
        rows = self.rows()
        return OpenSequence(rows.length, rows.at)

    def _about_to_change(self) -> None:
        if self.one_of_two is not None:
            self.one_of_two.complain()
        for others in self.before_change:
            others()

    # --- what Python does with a list

    def append(self, item: Any) -> None:
        self.extend([item])

    def extend(self, items: Iterable[Any]) -> None:
        self._about_to_change()
        if self._parts is None and not is_open(items):
            list.extend(self, items)
        else:
            added = items.held if isinstance(items, TracedList) else Parts.plain(items)
            self.place = self.place or getattr(items, "place", None)
            self.hold(self.held.then(added))

    def __iadd__(self, items: Any) -> TracedList:
        self.extend(items)
        return self

    def __add__(self, items: Any) -> TracedList:
        both = self.copy()
        both.extend(items)
        return both

    def __radd__(self, items: Any) -> Any:
        """`[first] + rest`, in code that was not rewritten: Python's own would take what stands for the items."""
        return TracedList.of(Parts.plain(items).then(self.held)) if isinstance(items, list) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        if self._parts is None and isinstance(times, int):
            return TracedList(list.__mul__(self, times))
        if self._parts is None and isinstance(times, torch.SymInt):
            return _repeated(self, times)
        return refuse("a list of open length is repeated", "repeat the stacked tensor instead")

    __rmul__ = __mul__

    def copy(self) -> TracedList:
        made = TracedList.of(self.held)
        made.stands_for, made.place = self.stands_for, self.place
        return made

    def clear(self) -> None:
        self._about_to_change()
        self.hold(Parts.plain(()))

    def pop(self, index: Any = -1) -> Any:
        self._about_to_change()
        if self._parts is None and isinstance(index, int):
            if not list.__len__(self):
                self._unfilled()
            return list.pop(self, index)
        self._must_hold_some()
        item = self[index]
        last = self.held.parts[-1]
        if index == -1 and not isinstance(last, Rows):
            self.hold(Parts((*self.held.parts[:-1], last[:-1])))
            return item
        rows = self.rows()
        if isinstance(index, int) and index == -1:
            self.hold(Parts((rows.part(0, rows.length - 1),)))
        elif isinstance(index, int) and index == 0:
            self.hold(Parts((rows.part(1, rows.length),)))
        else:
            refuse(
                "an item in the middle of a list of open length is taken out",
                "take the first or the last: pop(0), pop()",
            )
        return item

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        if self._parts is None and not isinstance(index, (torch.SymInt, torch.Tensor)):
            if not list.__len__(self):
                self._unfilled()
            return list.__getitem__(self, index)
        first, last = (self.held.parts[i] for i in (0, -1))
        if isinstance(index, int) and not isinstance(first, Rows) and 0 <= index < len(first):
            return first[index]
        if isinstance(index, int) and not isinstance(last, Rows) and index < 0 and -index <= len(last):
            return last[index]
        if self._parts is None and not list.__len__(self):
            self._unfilled()
        if TRACE.trace is not None:
            TRACE.trace.check_if_caught(lambda: within(index, self.length), IndexError)
        return self.rows().at(index)

    def _must_hold_some(self) -> None:
        if TRACE.trace is not None and self.is_open:
            TRACE.trace.check_if_caught(lambda: self.length > 0, IndexError)

    def _unfilled(self) -> None:
        if TRACE.trace is not None:
            raise Unfilled("list index out of range")

    def _slice(self, index: slice) -> Any:
        index = slice(*(p.item() if isinstance(p, torch.Tensor) else p for p in (index.start, index.stop, index.step)))
        bounds = (index.start, index.stop)
        if self._parts is None and not any(isinstance(b, torch.SymInt) for b in bounds):
            return TracedList(list.__getitem__(self, index))
        if index.step == -1 and index.stop == -1:
            return TracedList()
        if index.step == -1 and (forwards := turned(index)) is not None:
            backwards = self.copy() if forwards == slice(None) else self[forwards]
            backwards.reverse()
            return backwards
        if index.step not in (None, 1) and not (isinstance(index.step, int) and index.step > 0):
            return refuse("every so many items of a list of open length are taken", "slice the stacked tensor instead")
        try:
            part = self.rows().part(*bounds)
        except NotAlike:
            return self._mixed()
        made = TracedList.of(Parts((part,))) if index.step in (None, 1) else _every(part, index.step)
        made.stands_for, made.place = self.stands_for, self.place
        return made

    def __setitem__(self, index: Any, value: Any) -> None:
        self._about_to_change()
        traced = isinstance(index, (torch.SymInt, torch.SymBool, torch.Tensor))
        if self._parts is None and not traced:
            list.__setitem__(self, index, value)
        elif traced or isinstance(index, int):
            self._replace(index.item() if isinstance(index, torch.Tensor) else index, value)
        else:
            refuse("several items of a list of open length are replaced at once", "replace them one by one")

    def _replace(self, index: Any, value: Any) -> None:
        """Another item at a traced place, or in a list of open length."""
        if TRACE.trace is not None:
            TRACE.trace.put_back(value)
        try:
            rows = self.held.rows()
            items = rows.with_item(index, value)
            self.hold(Parts((items,)) if self.is_open else Parts.plain(items.exactly(list.__len__(self))))
        except NotAlike:
            if self.is_open:
                self._replace_at_an_end(index, value)
                return
            count, before = list.__len__(self), list(list.__iter__(self))
            for i, item in enumerate(before):
                here = (index == i) | (index == i - count)
                kept = RUNTIME_FUNCTIONS.ternary(here, lambda: value, lambda item=item: item)  # type: ignore[misc]
                list.__setitem__(self, i, kept)

    def _replace_at_an_end(self, index: Any, value: Any) -> None:
        """Another first or last item, which may be of another size than those before."""
        rows = self.rows()
        if isinstance(index, int) and index == -1:
            self.hold(Parts((rows.part(None, -1), (value,))))
        elif isinstance(index, int) and index == 0:
            self.hold(Parts(((value,), rows.part(1, None))))
        else:
            self._mixed()

    def __iter__(self) -> Any:
        if self._parts is None or sys._getframe(1).f_code in HANDS_IT_ON:
            return list.__iter__(self)
        return iter(OpenSequence(self.length, self.__getitem__))

    def __len__(self) -> int:
        if self._parts is None or sys._getframe(1).f_code in HANDS_IT_ON:
            return list.__len__(self)
        return int(
            refuse("the length of this list is known only when the model runs", "ask for it in the model's own code")
        )

    def __bool__(self) -> bool:
        return len(self) > 0

    def reverse(self) -> None:
        self._about_to_change()
        if self._parts is None:
            list.reverse(self)
            return
        rows, trace = self.rows(), TRACE.trace
        try:
            self.hold(Parts((rows.backwards(),)))
        except NotAlike:
            assert trace is not None
            from_the_end = OpenSequence(rows.length, lambda i: rows.at(rows.length - 1 - i))
            self.hold(trace.collect(from_the_end, lambda item: item).held)

    def _refused(self, *_: Any, **__: Any) -> Any:
        return refuse(
            "this needs to know each item of a list whose length is known only when the model runs",
            "stack the list and work on the tensor: torch.stack(items)",
        )

    def __contains__(self, item: object) -> bool:
        return list.__contains__(self, item) if self._parts is None else bool(self._refused())

    def insert(self, index: Any, item: Any) -> None:
        self._about_to_change()
        if self._parts is None:
            list.insert(self, index, item)
        elif index == 0:
            self.hold(Parts.plain([item]).then(self.held))
        else:
            self._refused()

    def sort(self, **options: Any) -> None:
        self._about_to_change()
        ordered = RUNTIME_FUNCTIONS.traced(sorted)(self, **options)
        self.hold(ordered.held if isinstance(ordered, TracedList) else Parts.plain(ordered))

    def remove(self, item: Any) -> None:
        self._about_to_change()
        list.remove(self, item) if self._parts is None else self._refused()

    def index(self, *args: Any) -> int:
        if self._parts is not None:
            return int(self._refused())
        found: int = RUNTIME_FUNCTIONS.traced([*list.__iter__(self)].index)(*args)
        return found

    def count(self, item: Any) -> int:
        if self._parts is not None:
            return int(self._refused())
        counted: int = RUNTIME_FUNCTIONS.traced([*list.__iter__(self)].count)(item)
        return counted

    def __eq__(self, other: object) -> bool:
        if self._parts is None and not is_open(other):
            return list.__eq__(self, other)
        return self is other or bool(self._refused())

    __hash__ = None

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (list, (list(self),))


def _every(rows: Rows, step: int) -> TracedList:
    """The first of each `step` items."""
    trace: Any = TRACE.trace
    picked = OpenSequence((rows.length + step - 1) // step, lambda i: rows.at(i * step))
    return TracedList.of(trace.collect(picked, lambda item: item).held)


def is_open(value: Any) -> bool:
    return isinstance(value, TracedList) and value.is_open


def _repeated(items: TracedList, times: Any) -> TracedList:
    """`[0.0] * n` for a traced n."""
    rows = items.rows()
    if list.__len__(items) != 1 or len(rows.tensors) != 1:
        refuse("a list is repeated as often as a traced number says", "expand a tensor instead")
    tensor = rows.tensors[0]
    return TracedList.of(Parts((Rows(rows.shape, (tensor.expand(times, *tensor.shape[1:]),)),)))
