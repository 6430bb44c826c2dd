"""The code frame of a diagnostic: path, lines, carets, and the calls that led there.

Made of styled pieces, so that the plain text and the coloured terminal show the same thing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from trueport.diagnostics.base import Diagnostic
from trueport.source import Where, columns_of, line_of, visible

Piece = tuple[str, str]
"""Text and the name of its style ('' is plain)."""
Line = tuple[Piece, ...]

MOST_CALLS = 6
"""How many frames of the call path are shown before the middle is left out."""
MOST_LABELS = 4
"""How many other lines are shown besides the one that a finding points at."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of source, what stands under it, and the sign that underlines it."""

    where: Where
    label: str
    style: str
    sign: str

    def under(self, text: str) -> tuple[int, str]:
        """The column where the underlining begins, and the underlining with its label."""
        columns = columns_of(self.where)
        if columns is None:
            return 0, self.label
        # Tabs are shown as four spaces, and the carets are moved with them.
        start = len(_shown(text[: columns[0] - 1]))
        end = len(_shown(text[: columns[1] - 1]))
        return start, f"{self.sign * max(1, end - start)} {self.label}".rstrip()


def gutter_of(found: Diagnostic) -> int:
    """How wide the column of line numbers is."""
    lines = [label.where.line for label in found.also[:MOST_LABELS]]
    if found.where:
        lines.append(found.where.line)
    return max((len(str(line)) for line in lines), default=1)


def shown_path(file: str) -> str:
    """The path as the user would type it: relative where the file lies below the current folder."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive, or no path at all
        return file
    return file if relative.startswith(os.pardir) or file.startswith("<") else relative


def position(where: Where) -> str:
    """`file:line:column`, or `file:line` where the column is not known."""
    columns = columns_of(where)
    return f"{shown_path(where.file)}:{where.line}" + (f":{columns[0]}" if columns else "")


def frame_lines(found: Diagnostic, width: int | None = None) -> Iterator[Line]:
    """`--> file:line:column`, the lines with what stands under them, then the calls from forward down to the first."""
    place, where = found.place, found.where
    if place is None or where is None:
        return
    gutter = gutter_of(found)
    margin = " " * gutter
    function = where.function.partition(".<locals>.<")[0]  # a comprehension is a part of its function
    inside = f" in {function}" if function else ""
    yield ((f"{margin}--> ", "gutter"), (position(where), "path"), (inside, "faint"))
    marks = [Mark(where, found.label, found.weight.value, "^")]
    marks += [Mark(label.where, label.text, "secondary", "-") for label in found.also[:MOST_LABELS]]
    yield from _snippet([mark for mark in marks if mark.where.file == where.file], gutter, width)
    for mark in marks:
        if mark.where.file != where.file:
            yield ((f"{margin}::: ", "gutter"), (position(mark.where), "path"))
            yield from _snippet([mark], gutter, width)
    if place.module:
        yield ((f"{margin} = ", "gutter"), ("in:    ", "faint"), (place.module, ""))
    callers = place.callers
    if callers:
        yield ((f"{margin} = ", "gutter"), ("called from:", "faint"))
        for call in _shortened(callers):
            yield ((f"{margin}   ", ""), *_call(call))


def _snippet(marks: Sequence[Mark], gutter: int, width: int | None) -> Iterator[Line]:
    """The marked lines of one file in their order; what lies between them is left out."""
    bar = (" " * gutter + " |", "gutter")
    last: int | None = None
    for number, here in groupby(sorted(marks, key=lambda mark: mark.where.line), key=lambda mark: mark.where.line):
        together = list(here)
        text = line_of(together[0].where)
        if text is None:
            continue
        if last is None:
            yield (bar,)
        elif number > last + 1:
            yield (("." * max(3, gutter), "gutter"),)
        last = number
        shown = _shown(text.rstrip())
        cut = _cut(shown, [mark.under(text)[0] for mark in together], width and width - gutter - 3)
        yield ((f"{number:>{gutter}} |", "gutter"), (f" {shown[cut]}", ""))
        for mark in together:
            start, under = mark.under(text)
            if under:
                yield (bar, (f" {' ' * (start - (cut.start or 0))}{under}", mark.style))


def _shown(text: str) -> str:
    return visible(text.expandtabs(4))


def _cut(text: str, starts: Sequence[int], room: int | None) -> slice:
    """The part of a long line that is shown: from its beginning, or from a little before what is underlined."""
    if room is None or len(text) <= room:
        return slice(None)
    first = 0 if min(starts) < room // 2 else min(starts) - room // 4
    return slice(first, first + max(room, 1))


def _shortened(calls: tuple[Where, ...]) -> list[Where | int]:
    """The call path, outermost first; of a long one the ends, and how many were left out between them."""
    if len(calls) <= MOST_CALLS:
        return list(calls)
    kept = MOST_CALLS // 2
    return [*calls[:kept], len(calls) - 2 * kept, *calls[-kept:]]


def _call(call: Where | int) -> Line:
    if isinstance(call, int):
        return ((f"  … {call} more", "faint"),)
    text = line_of(call)
    return ((f"  {shown_path(call.file)}:{call.line}", "path"), (f"  {text.strip()}" if text else "", "faint"))
