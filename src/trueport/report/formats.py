"""The ways in which a report can be printed, by the name that `--output-format` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trueport.report.concise import report_concise
from trueport.report.github import report_github
from trueport.report.junit import report_junit
from trueport.report.markdown import report_markdown
from trueport.report.model import Report
from trueport.report.sarif import report_sarif
from trueport.report.text import report_text

FORMATS: Mapping[str, Callable[[Report], str]] = {
    "full": report_text,
    "concise": report_concise,
    "json": Report.to_json,
    "sarif": report_sarif,
    "github": report_github,
    "junit": report_junit,
    "markdown": report_markdown,
}
