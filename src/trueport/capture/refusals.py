"""The user's line for a refusal that was raised where it is not known."""

from __future__ import annotations

from dataclasses import replace

from trueport.capture.failures import place_of
from trueport.capture.places import Places
from trueport.diagnostics.base import Diagnostic
from trueport.errors import ExportError


def placed(refused: ExportError) -> list[Diagnostic]:
    """The findings; those that have no place get the innermost line of the user's that the traceback passes."""
    place = place_of(refused.__traceback__, Places())
    if place.where is None:
        return list(refused.diagnostics)
    return [found if found.place else replace(found, place=place) for found in refused.diagnostics]
