"""Loops that an error leaves which the user's code catches outside of them.

    try:                                    for row in x:   (until an error was noted)
        for row in x:                           try: …
            if row.sum() > 1: raise Big    →    except Big as e: note e
    except Big: …                           if one was noted: raise it again

A round of a loop cannot be left in the middle, and taken up outside. So each round is run for each way through the
branch that raises, as a `try` around it would be; the loop carries whether there was an error, and what it holds; and
it is raised behind the loop, where the `try` is traced for each way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from trueport.capture.recording.flow import Flow
from trueport.capture.stops.raising import as_raised
from trueport.capture.values.disagreement import Disagreement
from trueport.rewrite.running.asking import nothing
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS, UNBOUND, BlockNames

_NAMES = ("whether an error was raised", "which error", "what the error holds")


@dataclass
class Escape:
    """One loop that errors of these kinds may leave."""

    control: Flow
    kinds: tuple[type[Exception], ...]
    state_around: BlockNames
    raised: Any = False
    which: Any = 0
    held: Any = UNBOUND
    seen: list[Exception] = field(default_factory=list)
    """An error of each type that was noted."""

    @property
    def state(self) -> BlockNames:
        """What a round may change: the names of the loop, and the error."""

        def put(values: tuple[Any, ...]) -> None:
            self.raised, self.which, self.held = values

        return self.state_around.and_more(lambda: (self.raised, self.which, self.held), put, _NAMES)

    def round(self, body: Callable[..., Any], *item: Any) -> None:
        """A round, traced for each way that raises."""
        catches = self.kinds

        def attempt() -> None:
            try:
                body(*item)
            except catches as error:
                if as_raised(error, self.control.tracer.places) is None:
                    raise
                self._note(error)

        self.control.forks.trace(attempt, self.state, catches=catches)

    def stopped(self, stop: Callable[[], Any]) -> Any:
        return RUNTIME_FUNCTIONS.or_(self.raised, stop)

    def going(self, test: Callable[[], Any]) -> Any:
        return RUNTIME_FUNCTIONS.and_(RUNTIME_FUNCTIONS.not_(self.raised), test)

    def leave(self) -> None:
        """Behind the loop: raise what a round raised."""
        RUNTIME_FUNCTIONS.if_(self.raised, lambda: self._raise_one_of(0), nothing, self.state)

    def _note(self, error: Exception) -> None:
        types = [type(each) for each in self.seen]
        if type(error) not in types:
            self.seen.append(error)
            types.append(type(error))
        self.raised, self.which = True, types.index(type(error))
        self.held = (tuple(error.args), {k: v for k, v in vars(error).items() if not k.startswith("tp_")})

    def _raise_one_of(self, first: int) -> None:
        if first + 1 >= len(self.seen):
            self._raise(first)
        RUNTIME_FUNCTIONS.if_(
            self.which == first, lambda: self._raise(first), lambda: self._raise_one_of(first + 1), self.state
        )

    def _raise(self, number: int) -> NoReturn:
        """The error, made anew of what the loop carried; what differs between rounds may not be looked at."""
        like = self.seen[number]
        made = type(like).__new__(type(like))
        if isinstance(self.held, Disagreement):
            made.args = tuple(self.held for _ in like.args)
            vars(made).update(dict.fromkeys(vars(like), self.held))
        else:
            made.args, attributes = self.held
            vars(made).update(attributes)
        made.tp_as_python = True  # type: ignore[attr-defined]
        raise made
