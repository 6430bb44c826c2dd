"""Functions that call themselves as often as a traced value says."""

from __future__ import annotations

import collections

from trueport.capture.places import Places
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.errors import ExportError

DEEP = 40
"""Branches in branches, from which on it is looked whether a function calls itself."""
_MOST_CALLS = 30
"""Of one line, in calls of each other. What is bounded by a plain number or a size of the example ends before."""


def refuse_endless(places: Places) -> None:
    """No graph holds a function that calls itself until a traced value says stop: each call would be written out."""
    calls = collections.Counter((frame.f_code, frame.f_lineno) for frame in places.users_frames())
    if calls and max(calls.values()) > _MOST_CALLS:
        raise ExportError(
            [
                LoopOnTensor(
                    message="a function calls itself as often as a traced value says",
                    place=places.here(),
                    label="decides whether it calls itself again",
                    fix="write it as a `while` loop, which becomes a Loop, or bound the depth by a plain number",
                )
            ]
        )
