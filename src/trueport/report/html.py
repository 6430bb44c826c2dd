"""Reports as one HTML file that opens offline: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from trueport.report.model import Report
from trueport.report.text import diagnostic_text, tally
from trueport.source import visible


def report_html(report: Report) -> str:
    """The report as a page. Everything that came from the user's model is escaped, as HTML and for the eye."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_printable
    )
    template = environment.from_string(files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8"))
    return template.render(report=report, tally=tally(report.checks), rendered=diagnostic_text)


def _printable(value: object) -> object:
    """What the template shows of a value. The page's own text goes this way too, and is markup already."""
    return value if isinstance(value, Markup) else visible(str(value), keep="\n")
