"""`trueport check`: everything but writing the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trueport.cli.checking import Checking, checking_options
from trueport.cli.outcome import told_plainly
from trueport.cli.request import model_options, read_request
from trueport.cli.showing import Showing, mention_fix, showing_options
from trueport.cli.working import working, working_options


@click.command()
@model_options
@checking_options
@working_options
@showing_options
def check(target: str, debug: bool, quiet: bool, timeout: float | None, **options: Any) -> None:
    """Say whether TARGET can be exported faithfully, without writing it.

    \b
      trueport check model.py:Net -i x:Nx3xHxW
    """
    with told_plainly(debug):
        showing = Showing.taken_from(options)
        start, checking = Path.cwd(), Checking.taken_from(options)
        with working(f"checking {target}", quiet, timeout):
            request = read_request(target=target, **options)
            from trueport import check as run

            report = run(request.given, request.args, **request.options, **checking.arguments(start))
        ended = showing.finish(report)
        mention_fix(report)
    raise SystemExit(ended)
