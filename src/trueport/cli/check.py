"""`trueport check`: everything but writing the model."""

from __future__ import annotations

from typing import Any

import click

from trueport.cli.outcome import ending, show, told_plainly, working
from trueport.cli.request import model_options, read_request
from trueport.cli.saving import refuse_report, report_option, save_report


@click.command()
@model_options
@report_option
def check(target: str, report_path: str | None, debug: bool, **options: Any) -> None:
    """Say whether TARGET can be exported faithfully, without writing it.

    \b
      trueport check model.py:Net -i x:Nx3xHxW
    """
    with told_plainly(debug):
        refuse_report(report_path)
        with working(f"checking {target}"):
            request = read_request(target=target, **options)
            from trueport.api import check as run

            report = run(request.model, request.args, **request.options)
        save_report(report, report_path)
        show(report)
    raise SystemExit(ending(report.diagnostics))
