"""`trueport verify`: any ONNX file against the torch model that it is said to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trueport.cli.checking import Checking, checking_options
from trueport.cli.outcome import told_plainly
from trueport.cli.request import (
    as_meant,
    parse_ranges,
    read_request,
    refuse_too_little_memory,
    source_root_option,
    target_options,
    usage_error,
)
from trueport.cli.showing import Showing, showing_options
from trueport.cli.working import working, working_options
from trueport.report import Report

_OF_THE_EXPORT = ("opset_version", "target", "random")


@click.command()
@click.argument("file")
@target_options
@click.option(
    "--state",
    type=click.Choice(["frozen"]),
    help="A model that writes to itself: the file is meant to begin each call in its present state.",
)
@click.option(
    "--budget", type=float, metavar="SHARE",
    help="Of two files: how far an output may be off, as a share of its largest value on the example.",
)  # fmt: skip
@source_root_option
@checking_options
@working_options
@showing_options
def verify(
    file: str,
    target: str,
    budget: float | None,
    source_root: str | None,
    debug: bool,
    quiet: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Compare FILE, whoever exported it, with TARGET in eager PyTorch; or two ONNX files with each other.

    Where the inputs declare no free size, those that FILE leaves open are free. If TARGET is an ONNX file that was made
    of FILE (simplified, in half precision, quantised), FILE is the reference; inputs are drawn from what it says of
    them, or given with -i.

    \b
      trueport verify net.onnx model.py:Net -i x:Nx3xHxW --weights net.safetensors
      trueport verify net.onnx net.int8.onnx --budget 0.05
    """
    with told_plainly(debug):
        if not Path(file).is_file():
            raise usage_error(f"there is no file {file}", fix="name an ONNX file")
        showing = Showing.taken_from(options)
        if target.lower().endswith(".onnx"):
            report = _of_two_files(file, target, budget, quiet, timeout, options)
        else:
            report = _of_a_model(file, target, budget, source_root, quiet, timeout, options)
        ended = showing.finish(report)
    raise SystemExit(ended)


def _of_a_model(
    file: str,
    target: str,
    budget: float | None,
    source_root: str | None,
    quiet: bool,
    timeout: float | None,
    options: dict[str, Any],
) -> Report:
    start = Path.cwd()
    if budget is not None:
        raise usage_error(
            "--budget is for two ONNX files; what is compared with eager is judged by its dtypes",
            fix="--rtol and --atol say how far an output may be off",
        )
    checking = Checking.taken_from(options, file)
    with working(f"verifying {file}", quiet, timeout):
        request = read_request(target=target, **options)
        from trueport.api import verify as run

        given = {name: value for name, value in request.options.items() if name not in _OF_THE_EXPORT}
        where = as_meant(file, start)
        given |= checking.arguments(start)
        return run(where, request.given, request.args, source_root=source_root, **given)


def _of_two_files(
    reference: str,
    file: str,
    budget: float | None,
    quiet: bool,
    timeout: float | None,
    options: dict[str, Any],
) -> Report:
    """The second file beside the first, which it was made of."""
    for flag in ("weights", "constants", "state"):
        if options[flag]:
            raise usage_error(f"--{flag} is for a torch model, and both are files", fix="leave it out")
    if not Path(file).is_file():
        raise usage_error(f"there is no file {file}", fix="name an ONNX file")
    specs, ranges = options["inputs"], parse_ranges(options["dims"])
    checking = Checking.taken_from(options, file)
    refuse_too_little_memory()
    with working(f"comparing {file} with {reference}", quiet, timeout):
        from trueport.api import verify_files
        from trueport.load.file_inputs import parse_file_inputs

        return verify_files(
            Path(reference),
            Path(file),
            lambda inputs: parse_file_inputs(inputs, specs, ranges).as_call(),
            budget=budget,
            **checking.arguments(Path.cwd()),
        )
