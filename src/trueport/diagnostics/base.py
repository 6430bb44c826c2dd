"""What every diagnostic is made of.

A diagnostic is data that travels with the result of a stage; nobody prints one where it is found. Each kind is one
class in one file of `rules/`, discovered and never listed: its code and title are class attributes, its docstring is
the page that `trueport explain CODE` prints, and its instances carry the place, the cause and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from trueport.source import Place, Where, visible


class Severity(Enum):
    """How much a finding weighs: an error stops the export, the others travel with it in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """Another line that matters for a finding, and what it has to do with it: the other arm, where a value was made."""

    where: Where
    text: str


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding about the user's model.

    `message` says what happened in this model (the `title` says it for all models), `label` is what stands under the
    carets, `also` are other lines that matter, `seen` lists the facts that were measured, `fix` is what to write or
    pass instead.
    """

    code: ClassVar[str] = "TP000"
    title: ClassVar[str] = ""
    default_severity: ClassVar[Severity] = Severity.ERROR
    no_example: ClassVar[str] = ""
    """Why the examples of the page are not run by a test: what it takes cannot be written down as a small model."""

    message: str
    place: Place | None = None
    label: str = ""
    also: tuple[Label, ...] = ()
    seen: tuple[str, ...] = ()
    fix: str = ""
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What a program may want to know of it, by name: {"size": "batch", "value": "8"}."""
    severity: Severity | None = field(default=None)

    @property
    def where(self) -> Where | None:
        return self.place.where if self.place else None

    @property
    def weight(self) -> Severity:
        return self.severity or self.default_severity

    @property
    def is_error(self) -> bool:
        return self.weight is Severity.ERROR

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return visible(f"{self.weight.value}[{self.code}]{at}: {self.message}", keep="\n")
