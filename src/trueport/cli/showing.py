"""`--output-format`, `--select`, `--ignore` and `--report`: how the result of a command is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from trueport.cli.outcome import Exit, ending, offer_bundle, reader_may_leave, show
from trueport.cli.request import usage_error
from trueport.cli.saving import refuse_report, report_option, save_report
from trueport.diagnostics.registry import all_rules
from trueport.diagnostics.spelling import in_a_shell
from trueport.fix.registry import fixes_for
from trueport.report import Report
from trueport.report.choice import chosen, kept_all_the_same
from trueport.report.formats import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


def showing_options(command: Command) -> Command:
    """Add the options that a `Showing` is made of."""
    for option in reversed(
        [
            click.option(
                "--output-format", type=click.Choice(list(FORMATS)), default="full", show_default=True,
                help="How findings are printed.",
            ),
            click.option(
                "--select", multiple=True, metavar="CODE",
                help="Show only these warnings and notes: TP303, or TP3 for all of them. Errors are always shown.",
            ),
            click.option(
                "--ignore", multiple=True, metavar="CODE", help="Leave out these warnings and notes. Never errors."
            ),
            report_option,
        ]
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class Showing:
    """What was asked for. Take it from a command's options with `taken_from`."""

    output_format: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    report_path: str | None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Showing:
        """Made of the options of `showing_options`, which are taken out of the others. Raises UsageError."""
        report_path = options.pop("report_path")
        refuse_report(report_path)
        return cls(
            options.pop("output_format"),
            _codes("--select", options.pop("select")),
            _codes("--ignore", options.pop("ignore")),
            None if report_path is None else os.path.abspath(report_path),  # the model may change the working folder
        )

    def finish(self, report: Report) -> Exit:
        """Show the report, save it if that was asked for, and say how the command ends."""
        spelt = replace(report, diagnostics=tuple(map(in_a_shell, report.diagnostics)))
        shown = chosen(spelt, self.select, self.ignore)
        save_report(shown, self.report_path)
        with reader_may_leave():
            if self.output_format == "full":
                show(shown)
            else:
                click.echo(FORMATS[self.output_format](shown))
        for code in kept_all_the_same(report, self.ignore):
            click.echo(f"--ignore {code}: it is an error here, and errors are always shown", err=True)
        offer_bundle(report.diagnostics)
        return ending(report.diagnostics)


def mention_fix(report: Report) -> None:
    """Where a fix answers one of the errors, say how to have it tried."""
    if any(fixes_for(found.code) for found in report.errors):
        click.echo("`trueport fix` with the same arguments looks for an edit, or a flag, that mends this", err=True)


def _codes(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Codes or beginnings of codes, also several in one word: `TP303,TP5`."""
    codes = [code.strip().upper() for word in given for code in word.split(",") if code.strip()]
    for code in codes:
        if not any(known.startswith(code) for known in all_rules()):
            raise usage_error(f"{option} {code}: no diagnostic has this code", fix="`trueport explain` lists them all")
    return tuple(codes)
