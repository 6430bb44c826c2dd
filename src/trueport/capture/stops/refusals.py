"""What a refusal lacks where it is raised: the user's line, the traceback of what failed, the bounds reached."""

from __future__ import annotations

import collections
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trueport.capture import limits
from trueport.capture.limits import Limit
from trueport.capture.stops.failures import place_of
from trueport.capture.stops.places import Places
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.diagnostics.rules.tp105_arm_dropped import ArmDropped
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError, refusal
from trueport.torch_internals.symbolic import has_hint, is_symbolic


def naming(reached: Sequence[Limit], found: Diagnostic) -> Diagnostic:
    """A finding, with the bounds that kept the trace from going on another way.

    Arms that disagree, or that raise what is caught, are refused where the rest cannot be traced for each of them.
    """
    if not reached or not found.is_error or not isinstance(found, ArmsDisagree | ArmDropped):
        return found
    limits = {each.name: each for each in reached}
    facts = {**found.facts, "limit": ", ".join(limits)}
    return replace(found, seen=(*found.seen, *(each.reached for each in limits.values())), facts=facts)


def placed(refused: ExportError) -> list[Diagnostic]:
    """The findings of a refusal.

    1. One that has no place gets the innermost line of the user's that the traceback passes.
    2. A bug of ours gets the traceback of the exception behind it.
    """
    place = place_of(refused.__traceback__, Places())
    cause = refused.__cause__
    found = []
    for one in refused.diagnostics:
        if one.where is None and place.where is not None:
            one = replace(one, place=place)
        if isinstance(one, OurFault) and cause is not None and not one.trace:
            one = replace(one, trace="".join(traceback.format_exception(cause)))
        found.append(one)
    return found


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
