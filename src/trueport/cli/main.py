"""`trueport`: the group of commands."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from trueport.cli.check import check
from trueport.cli.explain import explain
from trueport.cli.export import export


def _print_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    try:
        number = version("trueport")
    except PackageNotFoundError:
        number = "(running from source, not installed)"
    click.echo(f"trueport {number}")
    context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main() -> None:
    """Export PyTorch models to ONNX, and prove that the result is the same.

    Exit codes: 0 faithful, 1 findings, 2 usage, 3 a bug of trueport.
    """


main.add_command(export)
main.add_command(check)
main.add_command(explain)
