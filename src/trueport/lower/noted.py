"""The line that a node comes from, as its metadata have it.

While a model is being made, the file stands there as Python knows it; before anything is written it is replaced by a
path that says nothing about the machine (`SourceRoots`).
"""

from __future__ import annotations

from collections.abc import MutableMapping

from trueport.source import Place, SourceRoots, Where

SOURCE, MODULE = "trueport.source", "trueport.module"


def noted_place(notes: MutableMapping[str, str]) -> Place | None:
    """The place of a node of ours."""
    file, _, line = notes.get(SOURCE, "").rpartition(":")
    return Place((Where(file, int(line)),), notes.get(MODULE, "")) if line.isdecimal() else None


def note_place(notes: MutableMapping[str, str], roots: SourceRoots | None) -> None:
    """Write the file relative to its root; without `roots`, leave the line out."""
    place = noted_place(notes)
    if roots is None:
        notes.pop(SOURCE, None)
    elif place is not None and place.where is not None:
        notes[SOURCE] = f"{roots.note(place.where.file)}:{place.where.line}"
