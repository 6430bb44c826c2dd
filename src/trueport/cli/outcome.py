"""How a command ends: what is printed where, and the exit code.

Results and findings go to stdout, progress and faults of the request or of trueport to stderr.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from rich.console import Console

from trueport.cli.bundle import write_bundle
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError, UsageError
from trueport.report import Report
from trueport.report.text import diagnostics_lines, print_to, report_lines


class Exit(IntEnum):
    """The exit codes of every command."""

    FAITHFUL = 0
    FINDINGS = 1
    USAGE = 2
    OUR_FAULT = 3
    OF_SIGNALS = 128  # and the signal's number, as a shell reports it: 130 for Ctrl-C


class Terminated(KeyboardInterrupt):
    """Somebody wants the command to end: Ctrl-C, SIGTERM, or a terminal that was closed."""

    def __init__(self, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


def ending(found: Iterable[Diagnostic]) -> Exit:
    """The exit code for what was found about a model; a bug of ours is not to be taken for a fault of the model."""
    errors = [one for one in found if one.is_error]
    if any(isinstance(one, OurFault) for one in errors):
        return Exit.OUR_FAULT
    return Exit.FINDINGS if errors else Exit.FAITHFUL


@contextlib.contextmanager
def told_plainly(debug: bool) -> Iterator[None]:
    """Turn what a command raises into text and an exit code. With `debug`, the traceback comes first."""
    try:
        yield
    except ExportError as refused:
        if debug:
            traceback.print_exc()
        usage = isinstance(refused, UsageError)
        show_findings(refused.diagnostics, Console(stderr=usage))
        offer_bundle(refused.diagnostics)
        raise SystemExit(Exit.USAGE if usage else ending(refused.diagnostics)) from None
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Terminated) else signal.SIGINT
        raise SystemExit(Exit.OF_SIGNALS + number) from None
    except SystemExit as ended:  # the model's own: its code, such as 0, is no verdict
        print(f"the model ended the command (SystemExit: {ended.code}) before there was a verdict", file=sys.stderr)
        raise SystemExit(Exit.FINDINGS) from None
    except Exception as fault:  # noqa: BLE001 - the last wall: a bug of ours is told as one, never as a bare traceback
        if debug:
            traceback.print_exc()
        found = our_fault(fault)
        show_findings([found], Console(stderr=True))
        offer_bundle([found])
        raise SystemExit(Exit.OUR_FAULT) from None


def our_fault(fault: Exception) -> OurFault:
    """The finding that asks for a report, with the innermost place where the exception came from."""
    frames = traceback.extract_tb(fault.__traceback__)
    at = f"raised at {frames[-1].filename}:{frames[-1].lineno}" if frames else "raised at an unknown place"
    return OurFault(
        message=f"trueport itself failed: {type(fault).__name__}: {fault}",
        seen=(at,),
        fix="this is not a fault of your model: please report it",
        trace="".join(traceback.format_exception(fault)),
    )


def offer_bundle(found: Sequence[Diagnostic]) -> None:
    """Where a bug of ours was met, write what a report of it needs, and say where."""
    ours = [one for one in found if isinstance(one, OurFault)]
    if not ours:
        return
    path = write_bundle(found, [one.trace for one in ours if one.trace])
    if path is not None:
        print(f"what a report needs (versions, the command, the traceback) is in {path}", file=sys.stderr)


def show(report: Report) -> None:
    """Print a report as the result of a command."""
    console = Console()
    print_to(console, report_lines(report, _width(console)))


def show_findings(found: Iterable[Diagnostic], console: Console) -> None:
    print_to(console, diagnostics_lines(found, _width(console)))


def _width(console: Console) -> int | None:
    """A terminal has a width; what is piped to a file or a program has none."""
    return console.width if console.is_terminal else None


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is going on, and keep stdout for results: what the model itself prints goes to stderr."""
    console = Console(stderr=True)
    spinner = console.status(what) if console.is_terminal else contextlib.nullcontext()
    with spinner, contextlib.redirect_stdout(sys.stderr):
        yield
