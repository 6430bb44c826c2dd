"""`trueport fix`: edits of the user's source, shown once they have been tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from trueport.cli.checking import Checking, checking_options
from trueport.cli.outcome import Exit, ending, offer_bundle, show_findings, told_plainly
from trueport.cli.portable import fix_portable
from trueport.cli.request import model_options, parse_ranges
from trueport.cli.trial import trials
from trueport.cli.working import working, working_options
from trueport.diagnostics.base import Severity
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError, UsageError
from trueport.fix.command import Command
from trueport.fix.edit import unified_diff
from trueport.fix.search import Sought, find_fixes
from trueport.fix.telling import held_against_before, in_vain, taken, verified
from trueport.fix.writing import write_changes


@click.command()
@model_options
@click.option("--diff/--write", "diff", default=True, help="Show the edits (the default), or make them.")
@click.option(
    "--portable", is_flag=True, help="Write branches and loops so that torch.export takes them, too (torch.cond)."
)
@checking_options
@working_options
def fix(
    target: str, diff: bool, portable: bool, debug: bool, quiet: bool, timeout: float | None, **options: Any
) -> None:
    """Find edits of the source of TARGET with which it exports faithfully, and show them as a diff.

    Each is tried before it is shown: on a copy, which is exported, checked, and held against what eager gave before.

    \b
      trueport fix model.py:Net -i x:Nx3xHxW              # the diff, on stdout
      trueport fix model.py:Net -i x:Nx3xHxW --write      # into the file
    """
    with told_plainly(debug):
        if portable:
            Checking.taken_from(options)
            raise SystemExit(fix_portable(target, diff, quiet, timeout, **options))
        command = command_of(target, **options)
        with working(f"looking for a fix of {target}", quiet, timeout), trials() as trial:
            sought = find_fixes(command, trial)
        if sought.before.unusable:
            found = sought.before.report.diagnostics
            raise ExportError(found) if any(isinstance(one, OurFault) for one in found) else UsageError(found)
        ended = _tell(sought, diff)
    raise SystemExit(ended)


def command_of(target: str, **options: Any) -> Command:
    """What was typed. What is wrong with it by itself is found before any process is started."""
    parse_ranges(options["dims"])
    Checking.taken_from(dict(options))
    return Command(target, options.pop("inputs"), options.pop("dims"), options)


def _tell(sought: Sought, diff: bool) -> Exit:
    """Say what came of it: the diff on stdout, to be piped into `git apply`; the words about it on stderr."""
    if not sought.state.taken and sought.before.report.ok:
        click.echo(f"nothing to fix: {verified(sought.after)}")
        return Exit.FAITHFUL
    if not sought.found_a_way:
        return _tell_no_way(sought)
    for line in taken(sought):
        click.echo(line, err=True)
    changes = sought.changes
    command = sought.state.command
    if changes and diff:
        click.echo(unified_diff(changes), nl=False)
    elif changes:
        for path in write_changes(changes):
            click.echo(f"written: {_from_here(path)}", err=True)
    click.echo(f"tried on a copy: {verified(sought.after)}; {held_against_before(sought.after)}", err=True)
    if changes and diff:
        click.echo(f"to apply it: {sought.asked.text('fix', '--write')}", err=True)
    if command != sought.asked:
        click.echo(f"then run:    {command.text('export', '-o', 'model.onnx')}", err=True)
    left = [one for one in sought.after.report.diagnostics if one.weight is Severity.WARNING]
    if left:
        show_findings(left, Console(stderr=True))
    return Exit.FAITHFUL if changes and not diff and command == sought.asked else Exit.FINDINGS


def _tell_no_way(sought: Sought) -> Exit:
    """The findings as they are on disk, and what was tried in vain. Nothing is offered that was not verified."""
    found = sought.before.report.diagnostics
    show_findings([one for one in found if one.is_error], Console())
    click.echo()
    for line in in_vain(sought):
        click.echo(line)
    offer_bundle(found)
    return ending(found)


def _from_here(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
