"""The certificate: what was compared with eager, how, and what was not reached, beside the model that it speaks of.

It is an in-toto statement with a Test Result (https://in-toto.io/attestation/test-result/v0.1): its subjects are the
model and its data files by their hashes, and what only we know is in the field `trueport` of the predicate. So whoever
holds the model can tell that it is the one that was checked (`trueport audit`), repeat the check by its seed, and sign
it with the tools that sign such statements. The form is described in `docs/proof.schema.json`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trueport import temporary
from trueport.report.json import dumped
from trueport.report.model import CallsSummary, CheckedInput, Report
from trueport.source import SourceRoots, Where
from trueport.temporary import Written

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SCHEMA = 2
"""Of the field `trueport`. Raised when a key changes its meaning or goes away."""
SUFFIX = ".proof.json"


def save_certificate(report: Report, files: Sequence[Written], roots: SourceRoots | None) -> Path:
    """Write `<model>.proof.json` beside the model, whole or not at all; `files` are the model, then its data files.

    Places are noted as in the model. Without `roots` there are none, and nothing else of the source: the certificate
    goes where the model goes.
    """
    model = files[0].path
    target = model.with_name(model.name + SUFFIX)
    content = dumped(certificate(report, files, roots)) + "\n"
    with temporary.file_in(target.parent) as (new, file):
        file.write(content.encode())
        file.flush()
        os.replace(new, target)
    return target


def certificate(report: Report, files: Sequence[Written], roots: SourceRoots | None) -> dict[str, Any]:
    """The content of a certificate, as plain data: an in-toto statement."""
    details = _details(report, roots)
    tests = {True: list[str](), False: list[str]()}
    for name, whole in _tests(report, details):
        tests[whole].append(name)
    return {
        "_type": STATEMENT,
        "subject": [{"name": file.path.name, "digest": {"sha256": file.sha256}} for file in files],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "WARNED" if tests[False] else "PASSED",
            "configuration": [{"name": name, "uri": _package(name, at)} for name, at in report.versions.items()],
            "passedTests": tests[True],
            "warnedTests": tests[False],
            "failedTests": [],
            "trueport": details,
        },
    }


def _tests(report: Report, details: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """What was tested, by name, and whether all of it was decided. What has failed has no certificate."""
    yield "the model", bool(report.checks) and not report.undecided and not report.partly
    if report.calls is not None:
        yield "calls", report.calls.equal == report.calls.distinct and not report.calls.not_run
    for one, noted in zip(report.decisions, details["decisions"], strict=True):
        yield f"{noted['kind']} at {noted['where']}" if noted["where"] else noted["kind"], not one.unreached
    warnings = dict.fromkeys(found.code for found in report.warnings)
    yield from ((f"{code}: no warning", False) for code in warnings)


def _package(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{quote(version, safe='')}"


def _details(report: Report, roots: SourceRoots | None) -> dict[str, Any]:
    """What only we know of it."""

    def noted(where: Where | None) -> str:
        return "" if where is None or roots is None else f"{roots.note(where.file)}:{where.line}"

    return {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": {"name": report.model, "opset": report.opset},
        "versions": dict(report.versions),
        "inputs": [str(tensor) for tensor in report.inputs],
        "outputs": [str(tensor) for tensor in report.outputs],
        "left_out": dict(report.left_out),
        "free_sizes": [
            {"name": size.name, "minimum": size.minimum, "maximum": size.maximum} for size in report.free_sizes
        ],
        "constants": dict(report.constants) if roots is not None else {},
        "calls": _calls(report.calls),
        "check": {
            "seed": report.seed,
            "compared": [_compared(one) for one in report.checks],
            "searched_in_eager": report.searched,
            "refused_by_eager": report.refused_by_eager,
            "undecided": list(report.undecided),
            "endless_in_eager": report.endless,
            "checked_in_part": report.partly,
            "tolerances": dict(report.tolerances),
            "worst_error": _worst(report.checks),
        },
        "decisions": [
            {
                "where": noted(one.where),
                "function": one.where.function if roots is not None else "",
                "kind": one.kind,
                "decides_by": one.text if roots is not None else "",
                "ways": {way.name: way.inputs for way in one.ways},
            }
            for one in report.decisions
        ],
        "not_reached": [f"{noted(one.where) or one.kind}: {way}" for one in report.decisions for way in one.unreached],
        "assumptions": list(report.assumptions),
        "findings": [
            {
                "code": found.code,
                "severity": found.weight.value,
                "message": found.message if roots is not None else found.title,
                "where": noted(found.where),
            }
            for found in report.diagnostics
        ],
    }


def _calls(calls: CallsSummary | None) -> dict[str, Any] | None:
    if calls is None:
        return None
    return {
        "distinct": calls.distinct,
        "equal_on_edge_operands": calls.equal,
        "remembered": calls.remembered,
        "not_run": dict(calls.not_run),
        "differ_by_design": list(calls.by_design),
    }


def _compared(one: CheckedInput) -> dict[str, Any]:
    return {
        "sizes": dict(one.sizes),
        "values": one.family,
        "verdict": one.verdict.value,
        "worst_error": one.worst_error,
    }


def _worst(checks: Sequence[CheckedInput]) -> float | None:
    return max((one.worst_error for one in checks if one.worst_error is not None), default=None)
