"""The command in a process of its own, and another that sees how it ends.

A model is anybody's code. It may end its process (`os._exit(0)`), crash it, or use up the memory; and exit code 0 would
then say "faithful" where nothing was found out. So the command tells its exit code through a pipe, as its last word;
where that never came, the process that waits says what happened, and removes what was left.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console

from trueport import temporary
from trueport.cli.outcome import Exit, Terminated, show_findings
from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOT_THE_MODELS = {signal.SIGKILL, *_ENDING}
"""Signals that somebody sent: a person, a job's time limit, the kernel when memory runs out."""


class Supervised(click.Group):
    """A group of commands that are supervised when they come from the command line, and run plainly when called."""

    def main(self, args: Any = None, *more: Any, **options: Any) -> Any:
        if args is not None:
            return super().main(args, *more, **options)
        parent = os.getpid()
        told, tell = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_ENDING, signal.SIGCHLD})
        try:
            child = os.fork()
        except OSError:  # no process can be started: then nobody watches
            child = None
        if child:
            os.close(tell)
            raise SystemExit(_wait(child, told))
        os.close(told)
        if child == 0:
            temporary.end_with(parent)
        _unwind_when_asked()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _run(lambda: super(Supervised, self).main(None, *more, **options), tell)


_tell: int | None = None
"""Where the exit code is awaited; None where nobody waits."""


def last_word(code: int) -> None:
    """The exit code, for who waits for it; before a process ends by `os._exit`, too."""
    if _tell is not None:
        with suppress(OSError):
            os.write(_tell, b"%d" % code)


def _run(command: Callable[[], Any], tell: int) -> NoReturn:
    """The command, and then its exit code through the pipe, once all that it has to say is said."""
    global _tell
    _tell = tell
    try:
        command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        last_word(code)
        raise
    raise AssertionError("click ends each command by SystemExit")


def _unwind_when_asked() -> None:
    """SIGTERM and a closed terminal clean up as Ctrl-C does. Once: what comes next would interrupt the cleaning up."""
    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup leaves it

    def unwind(number: int, _: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(signal.Signals(number))

    for number in handled:
        signal.signal(number, unwind)


def _wait(child: int, told: int) -> int:
    """Until the command has ended: its exit code. A signal is handed on; the second one ends it as it is."""
    signal.signal(signal.SIGCHLD, lambda *_: None)  # one that is ignored might never be waited for
    asked = 0
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        number = signal.sigwait({*_ENDING, signal.SIGCHLD})
        if number != signal.SIGCHLD and signal.getsignal(number) is not signal.SIG_IGN:
            asked += 1
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL if asked > 1 else number)
    if asked:
        temporary.clear(Path(tempfile.gettempdir()))
    os.set_blocking(told, False)
    with suppress(BlockingIOError):
        if code := os.read(told, 16):
            return int(code)
    temporary.clear(Path(tempfile.gettempdir()))
    return _without_a_word(os.waitstatus_to_exitcode(ended[1]))


def _without_a_word(status: int) -> int:
    """Say how the process ended that gave no verdict."""
    number = signal.Signals(-status) if status < 0 else None
    if number in _NOT_THE_MODELS:
        print(f"ended by {number.name}: there is no verdict", file=sys.stderr)
        return Exit.OF_SIGNALS + number
    how = f"was ended by {number.name}" if number else f"ended with exit code {status}"
    found = EagerRefuses(
        message=f"the process that ran the model {how} before there was a verdict",
        fix="look for os._exit and the like in the model, or for a crash in code that is not Python: "
        "`python -X faulthandler` and a call of the model shows its line",
    )
    show_findings([found], Console(stderr=True))
    return Exit.FINDINGS
