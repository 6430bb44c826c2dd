"""`trueport`: the group of commands."""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from trueport import __version__
from trueport.cli.audit import audit
from trueport.cli.check import check
from trueport.cli.config import defaults
from trueport.cli.doctor import doctor
from trueport.cli.explain import explain
from trueport.cli.export import export
from trueport.cli.fix import fix
from trueport.cli.generate import generate
from trueport.cli.inspect import inspect
from trueport.cli.outcome import Exit, forget_reader, told_plainly
from trueport.cli.supervise import Supervised
from trueport.cli.sweep import sweep
from trueport.cli.verify import verify


class Commands(Supervised):
    """The commands, in a world where names and pipes are what they are."""

    def invoke(self, context: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):  # a name may hold letters that the terminal's encoding has not
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(context)
        except BrokenPipeError:
            forget_reader()
            raise SystemExit(Exit.NO_READER) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="trueport %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Export PyTorch models to ONNX, and prove that the result is the same.

    Every flag may have a default in the table [tool.trueport] of pyproject.toml.

    Exit codes: 0 faithful, 1 findings, 2 usage, 3 a bug of trueport.
    """
    with told_plainly(debug=False):
        context.default_map = defaults(main.commands)


main.add_command(export)
main.add_command(check)
main.add_command(fix)
main.add_command(verify)
main.add_command(inspect)
main.add_command(audit)
main.add_command(generate)
main.add_command(explain)
main.add_command(doctor)
main.add_command(sweep)
