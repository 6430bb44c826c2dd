"""What came of trying the model as it is, or with edits: data that one process hands to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trueport.fix.command import Command
from trueport.fix.edit import SourceFile
from trueport.report import Report
from trueport.source import Where
from trueport.source.scene import Scene


@dataclass(frozen=True, slots=True)
class AnswersKept:
    """Whether eager gives what it gave before the edits, on inputs that it accepted then."""

    same: int = 0
    different: str = ""
    """The first difference, in words."""
    only_at_one: bool = False
    """Every difference is at a size of 1, which torch spreads to whatever it meets."""


@dataclass(frozen=True)
class TrialOutcome:
    """One trial: what was found, what the names held at the lines of the findings, and whether answers were kept."""

    report: Report
    scene: Scene = field(default_factory=Scene)
    kept: AnswersKept = field(default_factory=AnswersKept)
    forward: Where | None = None
    """The first line of the model's forward."""
    target: Where | None = None
    """Where what the command names is defined."""
    unusable: bool = False
    """The model could not be made or called at all: the file does not import, an argument is missing."""

    @property
    def faithful(self) -> bool:
        return self.report.ok and self.report.verified


Files = Mapping[Path, SourceFile]
"""Files with other content than on disk."""
Trial = Callable[[Files, Command], TrialOutcome]
"""Check a model in a process of its own, with some files as they would be."""
