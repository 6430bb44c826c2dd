"""One line per finding, as editors and `grep` like it: `file:line:column: error[CODE] message`."""

from __future__ import annotations

from trueport.diagnostics.base import Diagnostic
from trueport.report.frame import position
from trueport.report.model import Report
from trueport.report.order import in_order
from trueport.report.text import headline_text
from trueport.source import visible


def report_concise(report: Report) -> str:
    """A line for each finding, then the verdict."""
    return "\n".join([*(_line(found) for found in in_order(report.diagnostics)), headline_text(report)])


def _line(found: Diagnostic) -> str:
    at = f"{position(found.where)}: " if found.where else ""
    return visible(f"{at}{found.weight.value}[{found.code}] {' '.join(found.message.split())}")
