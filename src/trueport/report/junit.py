"""JUnit XML, which every CI server can show: a test case that failed for each error, or one that passed."""

from __future__ import annotations

from xml.etree import ElementTree

from trueport.diagnostics.base import Diagnostic
from trueport.report.frame import position
from trueport.report.model import Report
from trueport.report.order import in_order
from trueport.report.text import diagnostic_text, headline_text, report_text
from trueport.source import visible


def report_junit(report: Report) -> str:
    """The report as one suite. Warnings, notes and the facts are the suite's output."""
    errors = [found for found in in_order(report.diagnostics) if found.is_error]
    cases = [_failed(report, found) for found in errors] or [_passed(report)]
    seconds = f"{sum(report.seconds.values()):.3f}"
    counts = {
        "tests": str(len(cases)),
        "failures": str(len(errors)),
        "errors": "0",
        "skipped": str(len(cases) if not errors and not report.verified else 0),
        "time": seconds,
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "trueport", **counts})
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = _clean(report_text(report))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _failed(report: Report, found: Diagnostic) -> ElementTree.Element:
    at = f" {position(found.where)}" if found.where else ""
    case = ElementTree.Element(
        "testcase", {"classname": _clean(report.model), "name": _clean(f"{found.code}{at}"), "time": "0"}
    )
    failure = ElementTree.SubElement(case, "failure", {"type": found.code, "message": _clean(found.message)})
    failure.text = _clean(diagnostic_text(found))
    return case


def _passed(report: Report) -> ElementTree.Element:
    """An export that was not compared with eager did not pass: it was skipped."""
    case = ElementTree.Element("testcase", {"classname": _clean(report.model), "name": "faithful", "time": "0"})
    if not report.verified:
        ElementTree.SubElement(case, "skipped", {"message": _clean(headline_text(report))})
    return case


def _clean(text: str) -> str:
    """Control characters have no place in XML, not even escaped as XML does it."""
    return visible(text, keep="\n")
