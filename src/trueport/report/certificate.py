"""The certificate: what was compared with eager, how, and what was not reached, beside the model that it speaks of.

Whoever holds the model can tell by its hash that it is the one that was checked, and repeat the check by its seed. The
form is described in `docs/proof.schema.json`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trueport import temporary
from trueport.report.json import dumped
from trueport.report.model import CallsSummary, CheckedInput, Report
from trueport.source import SourceRoots, Where
from trueport.temporary import Written

SCHEMA = 1
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
    """The content of a certificate, as plain data."""
    model, *weights = files

    def noted(where: Where | None) -> str:
        return "" if where is None or roots is None else f"{roots.note(where.file)}:{where.line}"

    return {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": {"name": report.model, **_file(model), "opset": report.opset},
        "weights": [_file(data) for data in weights],
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


def _file(written: Written) -> dict[str, Any]:
    """As it was written, whatever is in its place by now."""
    return {"file": written.path.name, "bytes": written.size, "sha256": written.sha256}


def _compared(one: CheckedInput) -> dict[str, Any]:
    return {
        "sizes": dict(one.sizes),
        "values": one.family,
        "verdict": one.verdict.value,
        "worst_error": one.worst_error,
    }


def _worst(checks: Sequence[CheckedInput]) -> float | None:
    return max((one.worst_error for one in checks if one.worst_error is not None), default=None)
