"""Which findings a user wants to see. Errors are always shown: what stops an export cannot be waved through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueport.report.model import Report


def chosen(report: Report, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Report:
    """The report without the warnings and notes that are not selected or are ignored; codes may be cut short: `TP3`."""
    kept = tuple(
        found
        for found in report.diagnostics
        if found.is_error
        or ((not select or found.code.startswith(tuple(select))) and not found.code.startswith(tuple(ignore)))
    )
    return replace(report, diagnostics=kept)


def kept_all_the_same(report: Report, ignore: Sequence[str]) -> tuple[str, ...]:
    """Codes that were to be ignored, and are errors here."""
    wanted = tuple(ignore)
    return tuple(dict.fromkeys(found.code for found in report.errors if wanted and found.code.startswith(wanted)))
