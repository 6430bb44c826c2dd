"""What a refusal lacks where it is raised: the user's line, and the traceback of what failed."""

from __future__ import annotations

import traceback
from dataclasses import replace

from trueport.capture.stops.failures import place_of
from trueport.capture.stops.places import Places
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError


def placed(refused: ExportError) -> list[Diagnostic]:
    """The findings of a refusal.

    1. One that has no place gets the innermost line of the user's that the traceback passes.
    2. A bug of ours gets the traceback of the exception behind it.
    """
    place = place_of(refused.__traceback__, Places())
    cause = refused.__cause__
    found = []
    for one in refused.diagnostics:
        if one.place is None and place.where is not None:
            one = replace(one, place=place)
        if isinstance(one, OurFault) and cause is not None and not one.trace:
            one = replace(one, trace="".join(traceback.format_exception(cause)))
        found.append(one)
    return found
