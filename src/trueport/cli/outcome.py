"""How a command ends: what is printed where, and the exit code.

Results and findings go to stdout, progress and faults of the request or of trueport to stderr.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from rich.console import Console

from trueport.cli.bundle import write_bundle
from trueport.cli.debugging import debugging
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.rules.tp901_our_fault import OurFault, report_it
from trueport.diagnostics.spelling import in_a_shell
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
    NO_READER = 141  # as it reports a program that wrote into a closed pipe


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
    """Turn what a command raises into text and an exit code. With `debug`, the traceback comes first, and what capture
    does is told (debugging.py)."""
    try:
        with debugging() if debug else contextlib.nullcontext():
            yield
    except ExportError as refused:
        if debug:
            traceback.print_exc()
        usage = isinstance(refused, UsageError)
        show_findings(refused.diagnostics, PipedConsole(stderr=usage))
        offer_bundle(refused.diagnostics)
        raise SystemExit(Exit.USAGE if usage else ending(refused.diagnostics)) from None
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Terminated) else signal.SIGINT
        raise SystemExit(Exit.OF_SIGNALS + number) from None
    except SystemExit as ended:  # the model's own: its code, such as 0, is no verdict
        print(f"the model ended the command (SystemExit: {ended.code}) before there was a verdict", file=sys.stderr)
        raise SystemExit(Exit.FINDINGS) from None
    except (MemoryError, ImportError) as lacking:  # of ours and of what we stand on; a model's own are its findings
        if debug:
            traceback.print_exc()
        show_findings([_cannot_run_here(lacking)], PipedConsole(stderr=True))
        raise SystemExit(Exit.USAGE) from None
    except BrokenPipeError:  # nobody reads any more; the group of commands ends then
        raise
    except BaseException as fault:  # noqa: BLE001 - the last wall: a bug of ours is told, never as a bare traceback
        if debug:
            traceback.print_exc()
        found = our_fault(fault)
        show_findings([found], PipedConsole(stderr=True))
        offer_bundle([found])
        raise SystemExit(Exit.OUR_FAULT) from None


def _cannot_run_here(lacking: MemoryError | ImportError) -> UsageFault:
    if isinstance(lacking, MemoryError):
        return UsageFault(
            message=f"there is not enough memory: {lacking}" if str(lacking) else "there is not enough memory",
            fix="raise the limit (`ulimit -v`, that of the container), or take smaller inputs",
        )
    return UsageFault(
        message=f"a library that trueport stands on cannot be loaded: {lacking}",
        fix="`trueport doctor` shows what is installed; where a limit on memory is set (`ulimit -v`), raise it",
    )


def our_fault(fault: BaseException) -> OurFault:
    """The finding that asks for a report, with the innermost place where the exception came from."""
    frames = traceback.extract_tb(fault.__traceback__)
    at = f"raised at {frames[-1].filename}:{frames[-1].lineno}" if frames else "raised at an unknown place"
    return OurFault(
        message=f"trueport itself failed: {type(fault).__name__}: {fault}",
        seen=(at,),
        fix=report_it(", with the file that is named below"),
        trace="".join(traceback.format_exception(fault)),
    )


def offer_bundle(found: Sequence[Diagnostic]) -> None:
    """Where a bug of ours was met, write what a report of it needs, and say where."""
    ours = [one for one in found if isinstance(one, OurFault)]
    if not ours:
        return
    path = write_bundle(found, [one.trace for one in ours if one.trace])
    if path is not None:
        print(f"the file to attach (versions, the command, the traceback) is in {path}", file=sys.stderr)


class PipedConsole(Console):
    """rich ends the process where nobody reads any more; how a command ends is not for it to say."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print a result whose verdict stands: `trueport verify … | head -1` ends as the verdict says, whether or not all
    of it was read."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        forget_reader()


def forget_reader() -> None:
    """What is still to be written goes nowhere: Python would complain about it at its very end."""
    with contextlib.suppress(OSError, ValueError):  # no file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(report: Report) -> None:
    """Print a report as the result of a command."""
    console = PipedConsole()
    print_to(console, report_lines(report, _width(console)))


def show_findings(found: Iterable[Diagnostic], console: Console) -> None:
    with reader_may_leave():
        print_to(console, diagnostics_lines(map(in_a_shell, found), _width(console)))


def _width(console: Console) -> int | None:
    """A terminal has a width; what is piped to a file or a program has none."""
    return console.width if console.is_terminal else None
