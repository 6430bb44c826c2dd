"""Where something happened, in the user's own words: a file, a line, a function, a module path."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass, field
from types import CodeType

_BLOCKS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

_STANDARD = sysconfig.get_path("stdlib") + os.sep


@dataclass(frozen=True, slots=True)
class Where:
    """One line of source. Columns are 1-based, `end_column` is one past the last, None where only the line is known."""

    file: str
    line: int
    function: str = ""
    column: int | None = None
    end_column: int | None = None
    readable: bool = True
    """Whether the line may be read and shown: not where a file that anybody may have written merely names it."""

    @classmethod
    def of(cls, code: CodeType, line: int = 1) -> Where:
        """A line of a function."""
        return cls(code.co_filename, line, code.co_qualname)

    @property
    def is_installed(self) -> bool:
        """Whether the line belongs to an installed library and not to the user's own code."""
        return "site-packages" in self.file or "dist-packages" in self.file

    @property
    def is_standard(self) -> bool:
        """Whether the line belongs to Python's own library."""
        return self.file.startswith(_STANDARD) and not self.is_installed

    @property
    def is_library(self) -> bool:
        """Whether the line is nobody's here: an installed library's, or Python's own."""
        return self.is_installed or self.is_standard

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a traced operation comes from.

    `calls` runs from the model's `forward` to the innermost frame that is not torch's own; the last of them is what
    a diagnostic points at. `module` is the path of the submodule that was running (`encoder.layers.3.attn`).
    """

    calls: tuple[Where, ...] = ()
    module: str = ""
    call: tuple[int, ...] = field(default=(), compare=False)
    """The calls of modules within which it happened, outermost first, where somebody notes them: a module may be called
    twice. Two places that differ in nothing else are the same place."""

    @property
    def where(self) -> Where | None:
        return self.calls[-1] if self.calls else None

    @property
    def callers(self) -> tuple[Where, ...]:
        """The calls that led to `where`, outermost first.

        Of the frames of one function only the innermost: the body of a loop that was rewritten is a function inside it,
        and so is a comprehension.
        """
        kept: list[Where] = []
        for call in self.calls:
            while kept and kept[-1].file == call.file and _is_inside(call.function, kept[-1].function):
                kept.pop()
            kept.append(call)
        return tuple(kept[:-1])

    def __str__(self) -> str:
        return str(self.where) if self.where else "unknown place"


def _is_inside(function: str, other: str) -> bool:
    """Whether a function is the other, or a block of it. One without a name is nobody's."""
    if not other:
        return False
    return function == other or function in (f"{other}.<locals>.{kind}" for kind in _BLOCKS)
