"""Containers that nobody may look at any more, since some rounds of a loop changed them and others did not."""

from __future__ import annotations

from typing import NoReturn

from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.kinds import ANOTHER, ONE
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.source import Place


class OutOfDate(Disagreement):
    """What stands in for a container, or an item of one, that some rounds changed under another name."""

    __slots__ = ()
    is_out_of_date = True

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, ONE, ANOTHER, place)

    def complain(self) -> NoReturn:
        name, _, _, place, *_ = self._said
        raise ExportError(
            [
                ArmsDisagree(
                    message=f"`{name}` is another container after a round of this loop than before it, one of them is"
                    " changed in place, and is used under another name as well",
                    place=place,
                    label=f"some of its rounds change what `{name}` was before, or what another name is",
                    fix=f"bind `{name}` to a copy before the loop, or change it only in place, or only by binding it",
                )
            ]
        )
