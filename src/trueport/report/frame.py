"""The code frame of a diagnostic: path, line, carets, and the calls that led there.

Made of styled pieces, so that the plain text and the coloured terminal show the same thing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from trueport.source import Place, Where, columns_of, line_of

Piece = tuple[str, str]
"""Text and the name of its style ('' is plain)."""
Line = tuple[Piece, ...]

MOST_CALLS = 6
"""How many frames of the call path are shown before the middle is left out."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of source with what stands under its carets."""

    where: Where
    label: str
    style: str

    def lines(self, gutter: int) -> Iterator[Line]:
        text = line_of(self.where.file, self.where.line)
        if text is None:
            return
        bar = (" " * gutter + " |", "gutter")
        yield (bar,)
        # Tabs are shown as four spaces, and the carets are moved with them.
        yield ((f"{self.where.line:>{gutter}} |", "gutter"), (f" {text.rstrip().expandtabs(4)}", ""))
        columns = columns_of(self.where)
        if columns is None:
            if self.label:
                yield (bar, (f" {self.label}", self.style))
            return
        start = len(text[: columns[0] - 1].expandtabs(4))
        end = len(text[: columns[1] - 1].expandtabs(4))
        carets = " " * (start + 1) + "^" * max(1, end - start)
        yield (bar, (f"{carets} {self.label}".rstrip(), self.style))


def shown_path(file: str) -> str:
    """The path as the user would type it: relative where the file lies below the current folder."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith(os.pardir) or file.startswith("<") else relative


def frame_lines(place: Place, label: str, style: str) -> Iterator[Line]:
    """`--> file:line:column`, the source line with carets, then the calls from forward down to it."""
    where = place.where
    if where is None:
        return
    columns = columns_of(where)
    gutter = len(str(where.line))
    at = f"{shown_path(where.file)}:{where.line}" + (f":{columns[0]}" if columns else "")
    inside = f" in {where.function}" if where.function else ""
    yield ((" " * gutter + "--> ", "gutter"), (at, "path"), (inside, "faint"))
    yield from Frame(where, label, style).lines(gutter)
    if place.module:
        yield ((" " * gutter + " = ", "gutter"), ("in:    ", "faint"), (place.module, ""))
    callers = place.calls[:-1]
    if callers:
        yield ((" " * gutter + " = ", "gutter"), ("called from:", "faint"))
        for call in _shortened(callers):
            yield ((" " * gutter + "   ", ""), *_call(call))


def _shortened(calls: tuple[Where, ...]) -> list[Where | int]:
    """The call path, outermost first; of a long one the ends, and how many were left out between them."""
    if len(calls) <= MOST_CALLS:
        return list(calls)
    kept = MOST_CALLS // 2
    return [*calls[:kept], len(calls) - 2 * kept, *calls[-kept:]]


def _call(call: Where | int) -> Line:
    if isinstance(call, int):
        return ((f"  … {call} more", "faint"),)
    text = line_of(call.file, call.line)
    return ((f"  {shown_path(call.file)}:{call.line}", "path"), (f"  {text.strip()}" if text else "", "faint"))
