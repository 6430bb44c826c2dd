"""Failures of the trace that the model's own `except` catches.

Eager went through such a line; the trace could not, and what the model does about errors is no answer to that: it would
go on with `except Exception: y = fallback`, and the graph would hold the fallback.
"""

from __future__ import annotations

from trueport.capture.stops.failures import is_of_tracing
from trueport.capture.stops.places import Places


class Swallowed:
    """What went wrong in calls of torch by the user's own code; what a library tries and leaves, the check judges."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._failures: list[BaseException] = []

    def note(self, failure: BaseException) -> None:
        """A call of torch ends with this, and the model sees it."""
        if is_of_tracing(failure) and self._places.called_by_user():
            self._failures.append(failure)

    def forget(self, failure: BaseException) -> None:
        """It was met by ourselves, who try something else."""
        self._failures = [each for each in self._failures if each is not failure]

    def bring_up(self) -> None:
        """The trace has ended as if nothing had happened: the first of them happens now."""
        if self._failures:
            raise self._failures[0]
