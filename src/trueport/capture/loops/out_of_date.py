"""What nobody may look at any more, since some rounds of a loop changed it and others did not."""

from __future__ import annotations

from typing import NoReturn

from trueport.capture.values.disagreement import Disagreement, beside_a_tensor
from trueport.capture.values.kinds import ANOTHER, ONE, both_told
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


class RoundsDisagree(Disagreement):
    """A name that rounds of a loop leave as something that it cannot be together with what it was."""

    __slots__ = ()

    def told(self) -> ArmsDisagree:
        name, *kinds, place, _, _ = self._said
        began, left = both_told(*kinds)
        return ArmsDisagree(
            message=f"{name} is {began} before a round of this loop, {left} after it, and is used afterwards",
            place=place,
            label="changes what it is from round to round",
            fix=beside_a_tensor(*kinds)
            or "make it the same dtype, number of axes and structure before the loop and in it",
        )
