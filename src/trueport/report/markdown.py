"""Markdown, for the summary of a CI job or a comment on a pull request:

trueport check model.py:Net -i x:Nx4 --output-format markdown >> "$GITHUB_STEP_SUMMARY"
"""

from __future__ import annotations

import re

from trueport.diagnostics.base import Diagnostic
from trueport.report.frame import position
from trueport.report.model import Report
from trueport.report.order import in_order
from trueport.report.text import headline_text, report_text
from trueport.source import visible

_ACTIVE = re.compile(r"[\\`*_{}\[\]<>#|~&]")
_HEAD = ("| | where | what | way out |", "|---|---|---|---|")


def report_markdown(report: Report) -> str:
    """The verdict, a table of the findings, and the whole text folded away."""
    rows = [_row(found) for found in in_order(report.diagnostics)]
    whole = report_text(report)
    fence = max(["``", *re.findall("`+", whole)], key=len) + "`"
    lines = [f"**{_escaped(headline_text(report))}**", ""]
    lines += [*_HEAD, *rows, ""] if rows else []
    lines += ["<details><summary>report</summary>", "", f"{fence}text", whole, fence, "", "</details>"]
    return "\n".join(lines)


def _row(found: Diagnostic) -> str:
    where = position(found.where) if found.where else ""
    cells = (f"{found.weight.value} {found.code}", where, found.message, found.fix)
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    """As it is, and in one line: no letter of it means anything to Markdown or HTML."""
    return _ACTIVE.sub(r"\\\g<0>", visible(" ".join(text.split())))
