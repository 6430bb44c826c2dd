"""Rewriting on demand: which function has to be rewritten, found by the trace running into its decision."""

from __future__ import annotations

import contextlib
import dis
import functools
import traceback
from collections.abc import Callable, Container
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import sympy

from trueport.capture import limits
from trueport.capture.stops.failures import place_of
from trueport.capture.stops.lookahead import Lookahead
from trueport.capture.stops.places import Places
from trueport.capture.stops.restarts import NeedsRewrite, Restarting, StartsAgain
from trueport.diagnostics.base import Label
from trueport.diagnostics.rules.tp107_cannot_rewrite import CannotRewrite
from trueport.errors import refusal
from trueport.graph.regions import Graph
from trueport.rewrite.calls import ASKING_IN_C
from trueport.rewrite.contexts import Called
from trueport.rewrite.forks import Fork
from trueport.rewrite.functions import COMPREHENSIONS, Refused, Rewriting, function_around, left_early_around
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS
from trueport.source import Place, Where
from trueport.torch_internals.messages import names_a_symbol, names_a_traced_value

_GENERATED = "<string>"
"""The file of methods that `dataclass` writes, which make lists by `default_factory`."""


def _traced(kind: type) -> Callable[[], Any]:
    """What makes a list or a deque that may be left open, in place of the type: `field(default_factory=list)`."""
    return lambda: RUNTIME_FUNCTIONS.traced(kind)()


class Demand:
    """Watches for decisions of the user's code in one export, over all its traces."""

    def __init__(self, rewriting: Rewriting | None = None, libraries: bool = False) -> None:
        self._rewriting, self._libraries = rewriting, libraries
        self._pending: Restarting | None = None
        self._lookahead = Lookahead()
        self._tails_left = int(limits.TAILS)
        self._forks_left = int(limits.FORKS)
        self.reached: list[limits.Limit] = []
        """The bounds because of which the present trace did not begin anew."""
        self.forks_off = False
        """Set where a statement did not come to the same branches again."""
        self._parting: set[tuple[str, int]] = set()
        """The lines of branches for whose ways a statement around them is run."""
        self.escapes: dict[tuple[str, int], set[type[Exception]]] = {}
        """By file and line of a loop: the errors that leave it, and are caught outside of it."""
        self.tables: set[tuple[str, int]] = set()
        """By file and line: where dicts are made that are given keys which are known only when the model runs."""
        self.one_sided: dict[CodeType, tuple[Any, ...]] = {}
        """Functions of libraries that branched on a free size and were not rewritten, with what is near them."""
        self.through_caches = False
        """Whether the functions below `lru_cache` are called, since a traced number reached one."""

    def asked(self, expr: sympy.Basic, places: Places, sizes: Container[sympy.Basic]) -> bool | sympy.Basic:
        """A plain answer is wanted where only a symbol is known. Returns whether Python of the user's wants it.

        `sizes` are the symbols of free sizes. The answer is returned where the trace has to begin anew for the
        function that asks, and goes on only to find other functions of that kind (see `lookahead.py`).
        """
        frame = places.deciding_frame()
        if frame is None:
            self.require(places.frame_calling(ASKING_IN_C), places)
            return False
        # A library that branches on a size mostly does so for speed: that is left to verification, both sides of it.
        # One that wants a size as a plain number (`range(seq)`) would freeze it.
        branches = not isinstance(expr, sympy.Expr) and all(s in sizes for s in expr.free_symbols)
        if branches and not self._libraries and Where.of(frame.f_code).is_installed:
            if (left := self._needs(frame, places)) is not None:
                self.one_sided.setdefault(left.code, left.roots)
            return True
        needed = None
        if Where.of(frame.f_code).is_standard:  # written for plain numbers: what calls it can do otherwise
            needed = self._needs(next(places.users_frames(), None), places)
        needed = needed or self._needs(frame, places)
        if needed is None:
            return True
        if not self._lookahead.goes_on(needed):
            self._raise(needed)
        self._pending = self._lookahead.found
        return self._lookahead.answer(expr, frame)

    def step(self) -> None:
        """An operator is recorded."""
        if not self._lookahead.step():
            self.end()

    def require(self, frame: FrameType | None, places: Places, place: Place | None = None) -> None:
        """Ask for the function of this frame to be rewritten, unless it is already."""
        needed = self._needs(frame, places, place)
        if needed is not None:
            self._raise(needed)

    def _needs(self, frame: FrameType | None, places: Places, place: Place | None = None) -> NeedsRewrite | None:
        if self._rewriting is None or frame is None:
            return None
        while frame.f_code.co_name in COMPREHENSIONS and frame.f_back is not None:
            frame = frame.f_back
        if self.covers(frame.f_code):
            return None
        return NeedsRewrite(frame.f_code, place or places.here(), _roots(frame))

    def require_code(self, code: CodeType, place: Place, roots: tuple[Any, ...] = ()) -> None:
        if not self.covers(code):
            self._raise(NeedsRewrite(code, place, roots))

    def covers(self, code: CodeType) -> bool:
        """Whether code is rewritten, or never will be."""
        return self._rewriting is None or self._rewriting.covers(code)

    def knows(self, before: Graph, model: object) -> None:
        """Rewrite at once what an earlier capture of the model had rewritten, and what it left of libraries: each would
        cost a trace to be found again. What cannot be rewritten is told when a trace comes there."""
        if self._rewriting is None:
            return
        self._rewriting.take_over(before.tails)
        for code, roots in {**dict.fromkeys(before.rewritten, ()), **before.one_sided}.items():
            with contextlib.suppress(Refused):
                self._rewriting.add(code, (*roots, model))

    def _raise(self, again: Restarting) -> NoReturn:
        self._pending = self._lookahead.found or again
        raise self._pending

    def begin(self) -> None:
        """A trace begins."""
        self._pending = None
        self.reached.clear()
        self._lookahead.begin()

    def end(self) -> None:
        """A trace went on to its end; not so if it is to begin anew.

        A bare `except:` of the user's may have stopped what said so, or the trace went on to find more functions.
        """
        if self._pending is not None:
            raise self._pending

    def require_callers(self, places: Places) -> None:
        """Ask for all of the user's functions that run just now, one after the other."""
        for frame in places.users_frames():
            self.require(frame, places)

    def require_makers(self, owner: object | None, places: Places, container: object = None) -> None:
        """Ask for the functions that may have made a list which traced values leave with an open length.

        One of those that run just now made it, or the `__init__` of the object whose attribute it is, or another method
        that sets the attribute (`self.reset()`).
        """
        self.require_callers(places)
        names = {name for name, held in vars(owner).items() if held is container} if owner is not None else set()
        for cls in type(owner).__mro__ if owner is not None else ():
            for code in _methods(cls):
                if not places.is_foreign(code) and names & _attributes_set(code):
                    self.require_code(code, places.here(), (cls,))
            init = vars(cls).get("__init__")
            if not isinstance(init, FunctionType) or places.is_foreign(init.__code__):
                continue
            if init.__code__.co_filename != _GENERATED:
                self.require_code(init.__code__, places.here(), (cls,))
            else:
                self._require_factories(init, type(container), places)

    def _require_factories(self, init: FunctionType, kind: type, places: Places) -> None:
        """Ask for the `default_factory`s of a dataclass, whose `__init__` nobody wrote: types, and functions."""
        self.end()
        cells = init.__closure__ or ()
        if self._rewriting is not None and self._rewriting.exchange(cells, kind, _traced(kind)):
            place = _at(init.__code__, init.__code__.co_firstlineno)
            self._raise(StartsAgain(f"a {kind.__name__} that a dataclass makes may be left open", place))
        for made_by in (cell.cell_contents for cell in cells):
            if isinstance(made_by, FunctionType) and not places.is_foreign(made_by.__code__):
                self.require_code(made_by.__code__, places.here(), (made_by,))

    def retry(self, failure: Exception, places: Places) -> None:
        """A traced number met something that takes plain ones only, or its name a table: rewritten code may do that."""
        text = str(failure)
        met = isinstance(failure, TypeError) and names_a_traced_value(text)
        if not met and not (isinstance(failure, (KeyError, AttributeError)) and names_a_symbol(text)):
            return
        if "unhashable" in text and not self.through_caches:
            self.through_caches = True
            place = place_of(failure.__traceback__, places)
            self._raise(StartsAgain("a traced number reached a function under a cache: caches are gone round", place))
        walked = (f for f, _ in traceback.walk_tb(failure.__traceback__) if not places.is_foreign(f.f_code))
        frames = [frame for frame in walked if not Where.of(frame.f_code).is_standard]
        if frames:
            self.require(frames[-1], places, place_of(failure.__traceback__, places))

    def want_tail(self, code: CodeType | None, line: int) -> None:
        """Start again with the rest of the block inside the branch on this line; returns where that was tried."""
        self.end()
        if self._rewriting is None or code is None or not self._rewriting.lacks_tail(code, line):
            return
        if self._tails_left == 0:
            self.reached.append(limits.TAILS)
            return
        self._rewriting.add_tail(code, line)
        self._tails_left -= 1
        why = "two arms disagree on something that is used after them: the rest of the block goes into both"
        self._raise(StartsAgain(why, _at(code, line)))

    def want_fork(self, code: CodeType, fork: Fork) -> None:
        """Start again with a statement that is run for each way through it; returns where that was tried."""
        self.end()
        if self._rewriting is None:
            return
        if self._forks_left == 0:
            if not self.forks_off and (not self.covers(code) or self._rewriting.lacks_tail(code, fork)):
                self.reached.append(limits.FORKS)
            return
        self.require_code(code, _at(code, fork.line))
        if self._rewriting.add_tail(code, fork):
            self._forks_left -= 1
            self._raise(StartsAgain("the statement is run for each way through what it calls", _at(code, fork.line)))

    def want_called(self, frame: FrameType, places: Places) -> None:
        """Start again with the `with` of this frame's line handing over its block; returns where that was tried."""
        self.end()
        self.require(frame, places)
        if self._rewriting is not None and self._rewriting.add_tail(frame.f_code, Called(frame.f_lineno)):
            place = _at(frame.f_code, frame.f_lineno)
            self._raise(StartsAgain("the `with` hands its block to a generator that decides", place))

    def want_table(self, site: tuple[str, int]) -> None:
        """Start again with a table where a dict is made; returns where that was tried."""
        self.end()
        if self._rewriting is not None and site not in self.tables:
            self.tables.add(site)
            place = Place((Where(*site),))
            self._raise(StartsAgain("a dict gets keys that only the run tells: it becomes a table", place))

    def want_escape(self, loop: tuple[str, int], kind: type[Exception]) -> None:
        """Start again with a loop that errors of this kind may leave; returns where that was tried."""
        self.end()
        known = self.escapes.setdefault(loop, set())
        if kind not in known:
            known.add(kind)
            self._raise(StartsAgain(f"{kind.__name__} may leave the loop", Place((Where(*loop),))))

    def give_up_forks(self) -> NoReturn:
        """Start again, and run no statement for each of its ways."""
        self.end()
        self.forks_off, self._forks_left = True, 0
        self._parting.clear()
        self._raise(StartsAgain("a statement did not come to the same branches again: none is run for each way"))

    def want_ways(self, code: CodeType | None, line: int, callers: list[tuple[CodeType, int]]) -> None:
        """Start again with the rest of what calls the function of a branch run for each of its arms.

        Before that, with the loop around the branch and what follows it, where an arm may leave that loop: what the
        other rounds do to a name is none of the arm's that left.
        """
        self.end()
        if code is None or self.forks_off:
            return
        is_new = (code.co_filename, line) not in self._parting
        self._parting.add((code.co_filename, line))
        first, last = function_around(code.co_filename, line)
        around = [(code, at) for at in left_early_around(code.co_filename, line)]
        around += [(c, at) for c, at in callers if c.co_filename != code.co_filename or not first <= at <= last]
        for each, at in around:
            self.want_fork(each, Fork(at, rest=True))
        if is_new and self._rewriting is not None and self._forks_left < limits.FORKS and around:
            self._raise(StartsAgain("a statement that is run for each way gets one more branch", _at(code, line)))

    def is_fork(self, places: Places) -> bool:
        """Whether the branch that is met just now is one for whose arms a statement around it is run."""
        if not self._parting:
            return False
        frame = places.asking_frame()
        return frame is not None and (frame.f_code.co_filename, frame.f_lineno) in self._parting

    def rewrite(self, needed: NeedsRewrite, model: object) -> None:
        """Rewrite what a trace asked for; of what it found besides, what can be: the next trace may not come there."""
        assert self._rewriting is not None
        for other in needed.more:
            with contextlib.suppress(Refused):
                self._rewriting.add(other.code, (*other.roots, model))
        try:
            self._rewriting.add(needed.code, (*needed.roots, model))
        except Refused as refused:
            where = needed.place.where
            raise refusal(
                CannotRewrite(
                    message=f"a traced value decides here, and the function cannot be rewritten: {refused.why}",
                    place=needed.place,
                    label="decided when the model runs",
                    also=(Label(Where(where.file, refused.line), refused.why),)
                    if where and refused.line != where.line
                    else (),
                    fix=refused.instead,
                )
            ) from None


def _at(code: CodeType, line: int) -> Place:
    return Place((Where.of(code, line),))


def _roots(frame: FrameType) -> tuple[Any, ...]:
    """The names around a frame's function, and what the function was first given: `self`, or its class."""
    given = frame.f_code.co_varnames[:1] if frame.f_code.co_argcount else ()
    return (frame.f_globals, *(frame.f_locals[name] for name in given if name in frame.f_locals))


def _methods(cls: type) -> list[CodeType]:
    """Those that somebody wrote."""
    codes = [method.__code__ for method in vars(cls).values() if isinstance(method, FunctionType)]
    return [code for code in codes if code.co_filename != _GENERATED]


@functools.lru_cache(maxsize=1024)
def _attributes_set(code: CodeType) -> frozenset[str]:
    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR")
