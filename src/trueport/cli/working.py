"""While a command works: what it tells, and how long it may take (`--quiet`, `--timeout`)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from trueport import progress
from trueport.cli.outcome import Exit, show_findings
from trueport.cli.supervise import last_word
from trueport.diagnostics.rules.tp007_out_of_time import OutOfTime
from trueport.errors import ExportError
from trueport.source import visible

Command = TypeVar("Command", bound=Callable[..., Any])
_INTERVAL = 10.0
"""Seconds between two lines where there is no terminal: a log is to show that something goes on, and be short."""
_GRACE = 10.0
"""Seconds in which a command that is out of time may tidy up."""


def working_options(command: Command) -> Command:
    """Add the options that `working` takes."""
    for option in reversed(
        [
            click.option("-q", "--quiet", is_flag=True, help="Tell nothing while working."),
            click.option(
                "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                help="End the command after so long, with nothing written.",
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


@contextlib.contextmanager
def working(what: str, quiet: bool = False, timeout: float | None = None) -> Iterator[None]:
    """Tell on stderr what is going on, and keep stdout for results: what the model itself prints goes to stderr.

    Raises ExportError where `timeout` seconds were not enough.
    """
    teller = _Teller(what, quiet)
    limit = contextlib.nullcontext() if timeout is None else _within(timeout, teller.reached)
    with limit, teller.telling(), progress.heard_by(teller.reached), contextlib.redirect_stdout(sys.stderr):
        yield


@dataclass
class _Teller:
    """A line that changes, on a terminal; elsewhere a line now and then."""

    what: str
    quiet: bool
    reached: progress.Reached = field(default_factory=progress.Reached)

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        console = Console(stderr=True)
        if self.quiet:
            yield
            return
        spinner = Status(self._words(0.0), console=console) if console.is_terminal else None
        stream, over, began = sys.stderr, threading.Event(), time.monotonic()

        def tell() -> None:
            while not over.wait(0.2 if spinner is not None else _INTERVAL):
                words = self._words(time.monotonic() - began)
                if spinner is not None:
                    spinner.update(words)
                else:
                    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                        print(words.plain, file=stream, flush=True)

        teller = threading.Thread(target=tell, daemon=True)
        with spinner or contextlib.nullcontext():
            with contextlib.suppress(RuntimeError):  # no thread to be had: then nothing is told
                teller.start()
            try:
                yield
            finally:
                over.set()
                if teller.ident is not None:
                    teller.join()

    def _words(self, seconds: float) -> Text:
        """As text and not as markup, since a file may be called `[red]`."""
        reached = str(self.reached)
        return Text(visible(f"{self.what}{': ' if reached else ''}{reached} ({seconds:.0f} s)"))


@contextlib.contextmanager
def _within(seconds: float, reached: progress.Reached) -> Iterator[None]:
    """End what runs meanwhile as Ctrl-C ends it, so that it tidies up: by a signal, which wakes what waits for a pipe.
    Where that does not help (a kernel that computes for minutes), the process ends after a moment of grace."""
    over, out_of_time = threading.Event(), threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        out_of_time.set()
        os.kill(os.getpid(), signal.SIGINT)
        if not over.wait(_GRACE):
            show_findings([out_of_time_at(seconds, reached)], Console(stderr=True))
            last_word(Exit.FINDINGS)
            os._exit(Exit.FINDINGS)

    watcher = threading.Thread(target=watch, daemon=True)
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, signal.SIG_DFL):  # as a shell starts a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    watcher.start()
    try:
        yield
    except KeyboardInterrupt:
        if not out_of_time.is_set():
            raise
        raise ExportError([out_of_time_at(seconds, reached)]) from None
    finally:
        over.set()
        watcher.join()
        if before in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, before)


def out_of_time_at(seconds: float, reached: progress.Reached) -> OutOfTime:
    return OutOfTime(
        message=f"the command was to end within {seconds:g} s; it had come to: {str(reached) or 'loading the model'}",
        fix="give it more time with --timeout, or look at what it came to",
    )
