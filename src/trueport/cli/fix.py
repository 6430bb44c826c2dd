"""`trueport fix`: an edit of the user's source that was tried before it is shown."""

from __future__ import annotations

from typing import Any

import click

from trueport.cli.checking import checking_options
from trueport.cli.outcome import told_plainly
from trueport.cli.request import model_options, usage_error


@click.command()
@model_options
@click.option("--diff/--write", "diff", default=True, help="Show the edits (the default), or make them.")
@click.option(
    "--portable",
    is_flag=True,
    help="Write branches and loops so that torch.export takes them, too (torch.cond and so on).",
)
@checking_options
def fix(target: str, diff: bool, portable: bool, debug: bool, **options: Any) -> None:
    """Find edits of the source of TARGET with which it exports faithfully, try them on a copy, and show them.

    \b
      trueport fix model.py:Net -i x:Nx3xHxW
    """
    with told_plainly(debug):
        raise usage_error("`trueport fix` is not there yet", fix="see `trueport check` for what to change")
