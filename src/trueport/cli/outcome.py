"""How a command ends: what is printed where, and the exit code.

Results and findings go to stdout, progress and faults of the request or of trueport to stderr.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from enum import IntEnum

from rich.console import Console

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
    INTERRUPTED = 130  # as a shell reports Ctrl-C


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
        print_to(Console(stderr=usage), diagnostics_lines(refused.diagnostics))
        raise SystemExit(Exit.USAGE if usage else ending(refused.diagnostics)) from None
    except KeyboardInterrupt:
        raise SystemExit(Exit.INTERRUPTED) from None
    except Exception as fault:  # noqa: BLE001 - the last wall: a bug of ours is told as one, never as a bare traceback
        if debug:
            traceback.print_exc()
        print_to(Console(stderr=True), diagnostics_lines([our_fault(fault, debug)]))
        raise SystemExit(Exit.OUR_FAULT) from None


def our_fault(fault: Exception, debug: bool) -> Diagnostic:
    """The finding that asks for a report, with the innermost place where the exception came from."""
    frames = traceback.extract_tb(fault.__traceback__)
    at = f"raised at {frames[-1].filename}:{frames[-1].lineno}" if frames else "raised at an unknown place"
    again = "" if debug else "; `--debug` prints the traceback to go with it"
    return OurFault(
        message=f"trueport itself failed: {type(fault).__name__}: {fault}",
        seen=(at,),
        fix=f"this is not a fault of your model: please report it{again}",
    )


def show(report: Report) -> None:
    """Print a report as the result of a command."""
    print_to(Console(), report_lines(report))


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is going on, and keep stdout for results: what the model itself prints goes to stderr."""
    console = Console(stderr=True)
    spinner = console.status(what) if console.is_terminal else contextlib.nullcontext()
    with spinner, contextlib.redirect_stdout(sys.stderr):
        yield
