"""`trueport inspect`: what is in an ONNX file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trueport.cli.outcome import PipedConsole, reader_may_leave, told_plainly
from trueport.report.text import print_to


@click.command()
@click.argument("file")
@click.option(
    "--output-format",
    type=click.Choice(["full", "json"]),
    default="full",
    show_default=True,
    help="json: everything, by docs/inspect.schema.json.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")  # fmt: skip
def inspect(file: str, output_format: str, debug: bool) -> None:
    """Show what is in FILE, whoever exported it: inputs, free sizes, operators, lines, weights, control flow.

    Nothing of it is run, and weights beside it are not read.

    \b
      trueport inspect net.onnx
    """
    with told_plainly(debug):
        from trueport.inspection.reading import inspect_file
        from trueport.inspection.text import inspection_lines

        found = inspect_file(Path(file))
        with reader_may_leave():
            if output_format == "json":
                click.echo(json.dumps(found.describe(), indent=1))
            else:
                print_to(PipedConsole(), inspection_lines(found))
