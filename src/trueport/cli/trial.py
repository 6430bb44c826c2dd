"""Has a model tried in other processes, and waits for what comes of it."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from trueport import progress, temporary
from trueport.cli.trial_child import TrialRequest
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.rules.tp007_out_of_time import OutOfTime
from trueport.diagnostics.rules.tp901_our_fault import OurFault, report_it
from trueport.fix.command import Command
from trueport.fix.outcome import Files, Trial, TrialOutcome
from trueport.report import Report

_LEAST_PATIENCE = 120.0


class Nursery:
    """The process from which trials are forked; started when first needed, and again after one had to be ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, request: Path, patience: float | None) -> int | None:
        """How the process of this request ended; None where it did not, within so many seconds."""
        if self._process is None:
            # -P: a file in the current folder must not be taken for one of the libraries
            command = [sys.executable, "-P", "-m", "trueport.cli.trial_child"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
        process = self._process
        assert process.stdin and process.stdout
        try:
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], patience)
        except BrokenPipeError:
            ready = [process.stdout]
        except KeyboardInterrupt:
            self.close()
            raise
        if not ready:
            self.close()
            return None
        answer = process.stdout.readline()
        if not answer:  # it could not even import what it needs
            self.close()
        return int(answer) if answer else 1

    def close(self) -> None:
        """End the process and whatever it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None


@contextlib.contextmanager
def trials(nursery: Nursery | None = None) -> Iterator[Trial]:
    """A function that tries a model with some files as they would be; the first call is the model as it is."""
    home = nursery or Nursery()
    with temporary.folder() as folder:
        took: list[float] = []

        def trial(files: Files, command: Command) -> TrialOutcome:
            progress.stage("trying" if took else "checking the model as it is")
            if took:
                progress.count(len(took), None, "edits")
            patience = max(_LEAST_PATIENCE, 5 * took[0]) if took else None
            began = time.monotonic()
            outcome = _run(home, folder, files, command, first=not took, patience=patience)
            took.append(time.monotonic() - began)
            return outcome

        try:
            yield trial
        finally:
            if nursery is None:
                home.close()


def _run(
    home: Nursery, folder: Path, files: Files, command: Command, first: bool, patience: float | None
) -> TrialOutcome:
    request, outcome = folder / "trial.request", folder / "trial.outcome"
    outcome.unlink(missing_ok=True)
    given = {str(path): source for path, source in files.items()}
    request.write_bytes(pickle.dumps(TrialRequest(command, given, folder / "answers", first, outcome, Path.cwd())))
    ended = home.run(request, patience)
    if ended is None:
        return _unusable(command, OutOfTime(message=f"the edited model was not checked within {patience:.0f} s"))
    if not outcome.exists():
        errors = request.with_suffix(".err")
        trace = errors.read_text(errors="replace") if errors.exists() else ""
        told = f"the process that tried the model ended with {ended}"
        if not trace.strip():  # it went without a word, as the model's own `os._exit` makes it
            return _unusable(command, EagerRefuses(message=told, fix="look for os._exit and the like in the model"))
        last = trace.strip().splitlines()[-1]
        return _unusable(command, OurFault(message=f"{told}: {last}", fix=report_it(), trace=trace))
    found: TrialOutcome = pickle.loads(outcome.read_bytes())
    return found


def _unusable(command: Command, found: Diagnostic) -> TrialOutcome:
    return TrialOutcome(Report(model=command.target, diagnostics=(found,)), unusable=True)
