"""The two examples of a diagnostic's page, as text and as programs that run."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import trueport
from trueport.diagnostics import Diagnostic
from trueport.diagnostics.registry import Rule

PREAMBLE = "import torch\nfrom torch import nn\n\nimport trueport\n\n"
"""What every example takes for granted."""
HERE = "# <- here"
"""Ends, in an example, the line at which the finding has to point."""


@dataclass(frozen=True)
class Example:
    language: str
    code: str


def sections(kind: Rule) -> dict[str, str]:
    """The page by heading; what stands before the first heading is under ''."""
    pieces = re.split(r"^## (.+)$", inspect.cleandoc(kind.__doc__ or ""), flags=re.MULTILINE)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def example(kind: Rule, heading: str) -> Example:
    """The one code block under a heading."""
    block = re.fullmatch(r"\s*```(python|sh|text)\n(.+)```\s*", sections(kind)[heading], flags=re.DOTALL)
    assert block, f"{heading} of {kind.code} is not one code block"
    return Example(block[1], block[2])


@dataclass(frozen=True)
class Outcome:
    """What an example came to: every finding, and whether the exported model was compared with eager."""

    file: Path
    findings: tuple[Diagnostic, ...]
    refused: bool
    verified: bool

    @property
    def marked_line(self) -> int | None:
        lines = self.file.read_text().splitlines()
        return next((number for number, line in enumerate(lines, 1) if HERE in line), None)


def run(code: str, name: str) -> Outcome:
    """Write an example to a file in the working folder and import it, so that it has source as a user's model has."""
    file = Path(f"{name}.py").absolute()
    file.write_text(PREAMBLE + code)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    reports: list[trueport.Report] = []
    export = trueport.export

    def noting(*args: object, **options: object) -> trueport.Program:
        program = export(*args, **options)  # type: ignore[arg-type]
        reports.append(program.report)
        return program

    trueport.export = noting
    try:
        spec.loader.exec_module(module)
    except trueport.ExportError as refused:
        return Outcome(file, refused.diagnostics, refused=True, verified=False)
    finally:
        trueport.export = export
        del sys.modules[name]
    (report,) = reports
    return Outcome(file, report.diagnostics, refused=False, verified=report.verified)
