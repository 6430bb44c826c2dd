"""`--report FILE`: the report as a file besides the text on stdout."""

from __future__ import annotations

from pathlib import Path

import click

from trueport.cli.request import usage_error
from trueport.load.outputs import refuse_output
from trueport.report import SUFFIXES, Report

report_option = click.option(
    "--report", "report_path", metavar="FILE", help="Save the report too: .html, .json or .txt."
)


def refuse_report(path: str | None) -> None:
    """Find out before the work begins that the report could not be kept. An older report is replaced without asking."""
    if path is None:
        return
    if Path(path).suffix.lower() not in SUFFIXES:
        raise usage_error(f"--report {path}: the suffix says no known format", fix=f"use one of {', '.join(SUFFIXES)}")
    refuse_output(Path(path), overwrite=True, what="report.html")


def save_report(report: Report, path: str | None) -> None:
    if path is None:
        return
    try:
        report.save(path)
    except OSError as error:
        raise usage_error(f"the report cannot be written: {error}", fix="name another file with --report") from error
