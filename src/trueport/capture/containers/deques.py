"""`collections.deque` in rewritten code: a list that is also filled and emptied on its left, and may be bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import ListParts


class TracedDeque(TracedList):
    """A deque of rewritten code. One that is full keeps its number of items, so that a loop carries them one by one."""

    stands_for = deque

    def __init__(self, items: Iterable[Any] = (), maxlen: int | None = None) -> None:
        super().__init__()
        self.maxlen = maxlen
        self.extend(items)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance(q, deque)` holds in any code."""
        return deque

    def empty(self) -> TracedDeque:
        return TracedDeque(maxlen=self.maxlen)

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(items)
        if self.maxlen is None:
            return
        if self.is_open:
            rows = self.rows()
            self.hold(ListParts((rows.part(torch.sym_max(rows.length - self.maxlen, 0), None),)))
        elif (surplus := list.__len__(self) - self.maxlen) > 0:
            list.__delitem__(self, slice(0, surplus))

    def appendleft(self, item: Any) -> None:
        self.extendleft([item])

    def extendleft(self, items: Iterable[Any]) -> None:
        self._about_to_change()
        turned = TracedList()
        turned.extend(items)
        turned.reverse()
        whole = TracedList.of(turned.held.then(self.held))
        self.hold(whole.held if self.maxlen is None else whole[: self.maxlen].held)

    def popleft(self) -> Any:
        return self.pop(0)

    def rotate(self, steps: Any = 1) -> None:
        self._about_to_change()
        if not self.is_open and not list.__len__(self):
            return
        length = self.length
        steps = steps % torch.sym_max(length, 1)
        items = TracedList.of(self.held)
        self.hold((items[length - steps :] + items[: length - steps]).held)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (deque, (list(self), self.maxlen))
