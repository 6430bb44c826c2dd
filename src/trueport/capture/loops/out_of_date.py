"""Containers that nobody may look at any more, since some rounds of a loop changed them and others did not."""

from __future__ import annotations

from typing import Any, NoReturn

from trueport.capture.containers.lists import TracedList
from trueport.capture.containers.parts import ListParts
from trueport.capture.containers.rows import NoRows
from trueport.capture.values.disagreement import Disagreement
from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import ExportError
from trueport.source import Place


class OutOfDate(Disagreement):
    """What stands in for a container, or an item of one, that some rounds changed under another name."""

    __slots__ = ()

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, "", "", place)

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


def spoiled(container: Any, why: Disagreement) -> Any:
    """What a container holds that is out of date."""
    if isinstance(container, TracedList):
        return ListParts((NoRows(why),))
    if isinstance(container, dict):
        return dict.fromkeys(dict.keys(container), why)
    return [why for _ in container] if isinstance(container, list) and container else why.complain()


def why_spoiled(content: Any) -> Disagreement | None:
    """Why a list is out of date that holds this; None where it is not. A dict is, key by key."""
    if isinstance(content, TracedList):  # what a name of the function around holds: a list that is asked by itself
        return None
    if isinstance(content, ListParts):
        if content.lost is not None:
            return content.lost.why
        content = content.items or ()
    items = content if isinstance(content, (list, tuple)) else ()
    return next((item for item in items if isinstance(item, OutOfDate)), None)
