"""Functions that call themselves as often as a traced value says."""

from __future__ import annotations

import collections
from typing import Any

from trueport.capture import limits
from trueport.capture.stops.places import Places
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.errors import refusal
from trueport.torch_internals.symbolic import has_hint, is_symbolic


def refuse_endless(places: Places, regions: int, test: Any) -> None:
    """No graph holds a function that calls itself until a traced value says stop: each call would be written out."""
    by_size = is_symbolic(test) and has_hint(test)
    most = limits.CALLS_BY_SIZE if by_size else limits.CALLS
    if regions <= most:
        return
    calls = collections.Counter((frame.f_code, frame.f_lineno) for frame in places.users_frames())
    if calls and max(calls.values()) > most:
        raise refusal(
            LoopOnTensor(
                message="a function calls itself as often as a traced value says",
                place=places.here(),
                label="decides whether it calls itself again",
                fix="write it as a `while` loop, which becomes a Loop, or bound the depth by a plain number",
                **limits.told(most),
            )
        )
