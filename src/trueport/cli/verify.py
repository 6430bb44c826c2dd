"""`trueport verify`: any ONNX file against the torch model that it is said to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trueport.cli.checking import Checking, checking_options
from trueport.cli.outcome import told_plainly
from trueport.cli.request import as_meant, read_request, source_root_option, target_options, usage_error
from trueport.cli.showing import Showing, showing_options
from trueport.cli.working import working, working_options

_OF_THE_EXPORT = ("opset_version", "target", "random")


@click.command()
@click.argument("file")
@target_options
@click.option(
    "--state",
    type=click.Choice(["frozen"]),
    help="A model that writes to itself: the file is meant to begin each call in its present state.",
)
@source_root_option
@checking_options
@working_options
@showing_options
def verify(
    file: str,
    target: str,
    source_root: str | None,
    debug: bool,
    quiet: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Compare FILE, whoever exported it, with TARGET in eager PyTorch.

    Where the inputs declare no free size, those that FILE leaves open are free.

    \b
      trueport verify net.onnx model.py:Net -i x:Nx3xHxW
    """
    with told_plainly(debug):
        start = Path.cwd()
        if not Path(file).is_file():
            raise usage_error(f"there is no file {file}", fix="name an ONNX file")
        showing = Showing.taken_from(options)
        checking = Checking.taken_from(options, file)
        with working(f"verifying {file}", quiet, timeout):
            request = read_request(target=target, **options)
            from trueport.api import verify as run

            given = {name: value for name, value in request.options.items() if name not in _OF_THE_EXPORT}
            where = as_meant(file, start)
            given |= checking.arguments(start)
            report = run(where, request.given, request.args, source_root=source_root, **given)
        ended = showing.finish(report)
    raise SystemExit(ended)
