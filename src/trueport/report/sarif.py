"""SARIF 2.1.0, which code scanning services and editors read. An output format, never the data model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.registry import Rule, page
from trueport.report.frame import shown_path
from trueport.report.json import dumped
from trueport.report.model import Report
from trueport.report.order import in_order
from trueport.report.text import headline_text
from trueport.source import Where, columns_of, line_of, visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def report_sarif(report: Report) -> str:
    """The findings as one run of one tool; the rules that they break are described with their whole page."""
    found = in_order(report.diagnostics)
    rules = list({one.code: type(one) for one in found}.values())
    driver: dict[str, Any] = {"name": "trueport", "rules": [_rule(kind) for kind in rules]}
    if "trueport" in report.versions:
        driver["version"] = report.versions["trueport"]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not any(one.code.startswith("TP9") for one in found)}],
        "results": [_result(one, rules) for one in found],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": headline_text(report), "verified": report.verified},
    }
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(kind: Rule) -> dict[str, Any]:
    markdown = page(kind)
    return {
        "id": kind.code,
        "name": kind.__name__,
        "shortDescription": {"text": kind.title},
        "help": {"text": markdown, "markdown": markdown},
        "defaultConfiguration": {"level": _LEVELS[kind.default_severity]},
    }


def _result(found: Diagnostic, rules: Sequence[Rule]) -> dict[str, Any]:
    said = [found.message, *found.seen, *([f"fix: {found.fix}"] if found.fix else [])]
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rules.index(type(found)),
        "level": _LEVELS[found.weight],
        "message": {"text": "\n".join(said)},
    }
    if found.where:
        result["locations"] = [_location(found.where)]
    related = [(label.where, label.text) for label in found.also]
    related += [(call, "called from here") for call in (found.place.callers if found.place else ())]
    if related:
        result["relatedLocations"] = [
            {"id": number, **_location(where), "message": {"text": text}}
            for number, (where, text) in enumerate(related, 1)
        ]
    return result


def _location(where: Where) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(where.line, 1)}
    if columns := columns_of(where):
        region |= {"startColumn": columns[0], "endColumn": columns[1]}
    if text := line_of(where):
        region["snippet"] = {"text": text}
    physical = {"artifactLocation": {"uri": _uri(where.file)}, "region": region}
    if not where.function:
        return {"physicalLocation": physical}
    return {"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": where.function}]}


def _uri(file: str) -> str:
    """Relative to the current folder where the file lies below it: services match that with the repository."""
    shown = visible(shown_path(file))
    return Path(shown).as_uri() if os.path.isabs(shown) else quote(shown.replace(os.sep, "/"))
