"""Workflow commands of GitHub Actions: each finding becomes an annotation on its line of the pull request."""

from __future__ import annotations

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.report.frame import shown_path
from trueport.report.model import Report
from trueport.report.order import in_order
from trueport.report.text import headline_text
from trueport.source import columns_of, visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def report_github(report: Report) -> str:
    """A command for each finding; the verdict stands in the log."""
    verdict = headline_text(report).replace("##[", "# #[")  # the runner obeys this anywhere in a line
    return "\n".join([*(_command(found) for found in in_order(report.diagnostics)), verdict])


def _command(found: Diagnostic) -> str:
    properties: dict[str, str] = {}
    if found.where:
        properties |= {"file": shown_path(found.where.file), "line": str(found.where.line)}
        if columns := columns_of(found.where):
            # GitHub counts the last column, we the one after it.
            properties |= {"col": str(columns[0]), "endColumn": str(max(columns[1] - 1, columns[0]))}
    properties["title"] = f"{found.code}: {found.title}"
    shown = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    said = [found.message, *found.seen, *([f"fix: {found.fix}"] if found.fix else [])]
    return f"::{_COMMANDS[found.weight]} {shown}::{_escaped(chr(10).join(said))}"


def _escaped(text: str, also: str = "") -> str:
    """As the runner reads it back: percent signs first, then line breaks, then what ends a property."""
    text = visible(text, keep="\n")
    for letter in f"%\r\n{also}":
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
