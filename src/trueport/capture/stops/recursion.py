"""Functions that call themselves as often as a traced value says."""

from __future__ import annotations

import collections
from typing import Any

import torch

from trueport.capture.stops.places import Places
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.errors import ExportError

_MOST_CALLS, _MOST_CALLS_BY_SIZE = 30, 7
"""Of one line, in branches of each other. What is bounded by a plain number or a size of the example ends before. Of
what a free size decides, sizes of sizes of sizes are asked about, which soon takes minutes."""


def refuse_endless(places: Places, regions: int, test: Any) -> None:
    """No graph holds a function that calls itself until a traced value says stop: each call would be written out."""
    by_size = isinstance(test, torch.SymBool) and test.node.has_hint()
    most = _MOST_CALLS_BY_SIZE if by_size else _MOST_CALLS
    if regions <= most:
        return
    calls = collections.Counter((frame.f_code, frame.f_lineno) for frame in places.users_frames())
    if calls and max(calls.values()) > most:
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
