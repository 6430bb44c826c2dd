"""Iterators that are advanced step by step, where a traced value tells whether there is another item.

An object of the user's with `__next__`, and `iter` of something of open length. Going
through one is a `while` loop: each round asks for the next item, and ends the loop where there is none.

Plain iterators of which arms and rounds take items by hand: `it = iter(layers)`, and `next(it)` in one arm.

No iterator of Python's can be put back to where it was. So what one gave is remembered, and how far it is; the arms of
a branch and the rounds of a loop change that number like any other, and where it is traced, items are looked up by it.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

from trueport.capture import limits
from trueport.capture.containers.choices import looked_up
from trueport.capture.containers.sequences import OpenSequence, opened, refuse
from trueport.capture.recording.flow import Flow
from trueport.capture.recording.tracer import Tracer
from trueport.graph.regions import Region
from trueport.load.structures import flatten
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, TRACE, UNBOUND, BlockNames
from trueport.torch_internals.symbolic import is_symbolic, is_traced, same_number


@dataclass
class StepResult:
    """What the last step gave: whether there was an item, and which."""

    found: Any = False
    item: Any = UNBOUND

    def beside(self, state: BlockNames, iterator: Callable[[], Any]) -> BlockNames:
        """It changes with the names of a block, and so does what remembers how far the iterator is."""

        def put(values: tuple[Any, ...]) -> None:
            _, self.found, self.item = values

        names = ("the iterator", "whether there is an item", "the item")
        return state.and_more(lambda: (iterator(), self.found, self.item), put, names)


class Stepper(ABC):
    """Something that gives one item after the other."""

    holds_state = True
    """Branches and rounds of loops change what it remembers."""

    @abstractmethod
    def advance(self, control: Flow, step: StepResult, state: BlockNames) -> None:
        """Take the next item; `state` is what the loop and this step may change."""

    @property
    @abstractmethod
    def iterator(self) -> Any:
        """What remembers how far it is."""

    def __iter__(self) -> Stepper:
        return self


class OfTheUser(Stepper):
    """An object whose class defines `__next__`, and raises StopIteration where a traced value says so."""

    def __init__(self, iterator: Any, following: Callable[[], Any]) -> None:
        self._iterator, self._following = iterator, following

    @property
    def iterator(self) -> Any:
        return self._iterator

    def advance(self, control: Flow, step: StepResult, state: BlockNames) -> None:
        def take() -> None:
            step.found = False
            try:
                step.item = self._following()
                step.found = True
            except StopIteration:
                pass

        control.forks.trace(take, state, catches=(StopIteration,))


class Position:
    """How far an iterator is."""

    holds_state = True
    is_one_leaf = True

    def __init__(self) -> None:
        self.taken: Any = 0
        self.is_unknown: Any = False
        """A function of Python's goes through it that may stop early, or begin later (`zip`, `any`)."""


class ByPosition(Stepper):
    """Something that is gone through in order, of which some may be taken by hand.

    Two of them are two things: what one goes through is known only where it was made.
    """

    is_one_leaf = True

    def __init__(self) -> None:
        self.position = Position()

    @property
    def iterator(self) -> Any:
        return self.position

    @property
    @abstractmethod
    def has_more(self) -> Any:
        """Whether another item is left."""

    @abstractmethod
    def take(self) -> Any:
        """The next item."""

    def advance(self, control: Flow, step: StepResult, state: BlockNames) -> None:
        def take() -> None:
            step.item, step.found = self.take(), True

        def end() -> None:
            step.found = False

        RUNTIME_FUNCTIONS.if_(self.has_more, take, end, state)


class OfOpenLength(ByPosition):
    """`iter(rows)`."""

    def __init__(self, sequence: OpenSequence, source: Any) -> None:
        super().__init__()
        self.sequence, self._source = sequence, source

    def __iter__(self) -> Stepper:
        """Only rewritten code can go through it."""
        if TRACE.trace is not None:
            TRACE.trace.rewrite_caller()
        return self

    @property
    def has_more(self) -> Any:
        self._ask()
        return self.position.taken < self.sequence.length

    def take(self) -> Any:
        item = self.sequence.at(self.position.taken)
        self.position.taken = self.position.taken + 1
        return item

    def rest(self) -> OpenSequence:
        """The items that are left, for a function that may not take them all, or not now."""
        self._ask()
        self.position.is_unknown = True
        return self._left()

    def all_of_it(self) -> Any:
        """The items that are left, for a function that takes them all."""
        self._ask()
        left = self._left() if is_symbolic(self.position.taken) or self.position.taken else self._source
        self.use_up()
        return left

    def use_up(self) -> None:
        """It gives nothing any more."""
        self.position.taken = self.sequence.length

    def several(self, count: int) -> OpenSequence:
        """`zip(it, it)`: so many of those at a time."""
        rest = self.rest()
        return OpenSequence(rest.length // count, lambda i: tuple(rest.at(i * count + k) for k in range(count)))

    def _left(self) -> OpenSequence:
        first = self.position.taken
        if same_number(first, self.sequence.length):
            return OpenSequence(0, self.sequence.at, most=0)
        return OpenSequence(self.sequence.length - first, lambda i: self.sequence.at(first + i))

    def _ask(self) -> None:
        if self.position.is_unknown is not False:
            refuse("an iterator is used again that a function went through", "make a list of it first")


def stepper(control: Flow, over: Any) -> Stepper | None:
    if isinstance(over, Stepper):
        return over
    known: Stepper | None = control.remembered_already(over)
    if known is not None:
        return known
    if control.own_method(over, "__next__") is None:
        return None
    begin = control.own_method(over, "__iter__")
    started = over if begin is None else begin()
    following = control.own_method(started, "__next__")
    return None if following is None else OfTheUser(started, following)


def go_through(
    control: Flow, steps: Stepper, body: Callable[[Any], Any], stop: Callable[[], Any], state: BlockNames
) -> None:
    step = StepResult()
    whole = step.beside(state, lambda: steps.iterator)

    def end() -> None:
        step.found = False

    def test() -> Any:
        go_on = control.negate(stop())
        RUNTIME_FUNCTIONS.if_(go_on, lambda: steps.advance(control, step, whole), end, whole)
        return step.found

    RUNTIME_FUNCTIONS.while_(test, lambda: body(step.item), whole)


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
