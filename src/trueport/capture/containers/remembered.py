"""Plain iterators of which arms and rounds take items by hand: `it = iter(layers)`, and `next(it)` in one arm.

No iterator of Python's can be put back to where it was. So what one gave is remembered, and how far it is; the arms of
a branch and the rounds of a loop change that number like any other, and where it is traced, items are looked up by it.
"""

from __future__ import annotations

import itertools
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from trueport.capture import limits
from trueport.capture.containers.choices import looked_up
from trueport.capture.containers.sequences import OpenSequence, opened, refuse
from trueport.capture.containers.stepping import ByPosition
from trueport.capture.graph import Region
from trueport.load.structures import flatten
from trueport.torch_internals.symbolic import is_symbolic, is_traced

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer


class Remembered(ByPosition):
    """A plain iterator, the items that it gave, and the regions in which it made them."""

    def __init__(self, source: Any, tracer: Tracer) -> None:
        super().__init__()
        self._source, self._tracer = source, tracer
        self._given: list[tuple[Any, Region]] = []
        self._endless: OpenSequence | None = None
        if isinstance(source, (itertools.count, itertools.cycle)):
            self._endless = opened(source)

    @property
    def has_more(self) -> Any:
        if self._endless is not None:
            return True
        taken = self.position.taken
        return taken < self._count() if is_symbolic(taken) else self._gave(taken + 1)

    def take(self) -> Any:
        taken = self.position.taken
        self.position.taken = taken + 1
        if self._endless is not None:
            return self._endless.at(taken)
        if is_symbolic(taken):
            return looked_up([self._item(i) for i in range(self._count())], taken)
        return self._item(taken)

    def _gave(self, count: int) -> bool:
        """Whether it gives so many items, of which those that it did not yet are taken now."""
        while len(self._given) < count:
            try:
                self._given.append((next(self._source), self._tracer.regions[-1]))
            except StopIteration:
                return False
        return True

    def _count(self) -> int:
        if self._gave(limits.ITEMS_OF_AN_ITERATOR):
            refuse(
                "a traced value says how far an iterator is that gives ever more items",
                "index a list instead",
                limits.ITEMS_OF_AN_ITERATOR,
            )
        return len(self._given)

    def _item(self, place: int) -> Any:
        """An item; what a generator computed in one arm is not there in another."""
        item, region = self._given[place]
        computed = (
            isinstance(self._source, (GeneratorType, map, filter)) or type(self._source).__module__ == "itertools"
        )
        if computed and not any(region is each for each in self._tracer.regions) and _is_traced(item):
            refuse("an arm of a branch takes what a generator computes, and another one as well", "make a list of it")
        return item

    def __next__(self) -> Any:
        if is_symbolic(self.position.taken):
            refuse("how far this iterator is, is known only when the model runs", "index a list instead")
        if self.has_more is False:
            raise StopIteration
        return self.take()


def _is_traced(item: Any) -> bool:
    return any(is_traced(leaf.value) for leaf in flatten(item, "item")[0])
