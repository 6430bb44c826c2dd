"""Errors that one arm of a branch raises, where the user's code goes on with them."""

from __future__ import annotations

from collections.abc import Callable

from trueport.capture.branches.escapes import Escape
from trueport.capture.branches.forks import Forks
from trueport.capture.branches.questions import Questions
from trueport.capture.stops.places import calling_frame
from trueport.capture.stops.raising import catcher, refuse_if_caught
from trueport.rewrite.forks import Fork
from trueport.rewrite.running.runtime import BlockNames


class Catching(Questions):
    """The part of a trace's control flow that looks for whoever catches an error."""

    forks: Forks

    def raised(self, kind: type[Exception], fork: Callable[[], None]) -> None:
        """One arm raises: where the user's code would go on with the error, the statement that does runs for each."""
        if self.forks.expects(kind):
            fork()
        if issubclass(kind, StopIteration):
            self.tracer.demand.require_callers(self.tracer.places)  # the loop that goes on after it
        caught = catcher(kind, self.tracer.places)
        if caught is not None:
            if caught.loop in self.tracer.demand.escapes:
                self.tracer.demand.want_escape(caught.loop, kind)
            self.tracer.demand.want_fork(caught.code, Fork(caught.line, rest=False))
            fork()
            if caught.loop is not None:
                self.tracer.demand.want_escape(caught.loop, kind)
        refuse_if_caught(kind, self.tracer.places)

    def escape(self, state: BlockNames) -> Escape | None:
        frame = calling_frame()
        kinds = self.tracer.demand.escapes.get((frame.f_code.co_filename, frame.f_lineno))
        return None if kinds is None else Escape(self, tuple(kinds), state)
