"""A process that judges samples one after another, and the parent that starts it anew when it hangs or dies.

A process per sample would spend most of the hour importing torch.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.children import HarnessError
from benchmarks.judge import Verdict, judge
from benchmarks.ops.samples import Unmeasurable, subjects

PEER_SAMPLES = 3
"""How many samples of an operator the peer is asked for: it takes seconds for each."""


@dataclass(frozen=True)
class Task:
    """One operator in one variant."""

    operator: str
    variant: str
    free: bool
    exporter: str
    limit: int | None


@dataclass(frozen=True)
class Outcome:
    """What became of one sample. `verdict` is a Verdict, or `unmeasurable`."""

    sample: int
    verdict: str
    code: str = ""
    detail: str = ""


def _work(pipe: Connection) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    while True:
        try:
            task, start = pipe.recv()
        except EOFError:
            return
        try:
            for index, subject in enumerate(subjects(task.operator, task.variant, task.free, task.limit)):
                if index >= start:
                    pipe.send(("begin", index))
                    pipe.send(("end", _outcome(index, subject, task.exporter)))
        except BaseException:
            pipe.send(("error", f"{task}\n{traceback.format_exc()}"))
            raise
        pipe.send(("done", None))


def _outcome(index: int, subject: Any, exporter: str) -> Outcome:
    if isinstance(subject, Unmeasurable):
        return Outcome(index, "unmeasurable", detail=subject.why)
    with tempfile.TemporaryDirectory(prefix="trueport-ops-") as folder:
        found = judge(subject, exporter, Path(folder), lambda _: None)
    return Outcome(index, found.verdict.value, found.code, " ".join(found.detail.split())[:200])


class Watched:
    """A worker under a time limit for each sample."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, task: Task) -> Sequence[Outcome]:
        """All samples of an operator. One that ends or hangs the worker is `crashed`, and the next one follows."""
        found: list[Outcome] = []
        while True:
            start = found[-1].sample + 1 if found else 0
            try:
                found += self._from(task, start)
                return found
            except _Died as died:
                found += died.before
                found.append(Outcome(died.sample, Verdict.CRASHED.value, detail=died.why))
                self.close()

    def _from(self, task: Task, start: int) -> list[Outcome]:
        pipe = self._ready()
        pipe.send((task, start))
        found: list[Outcome] = []
        current = start
        deadline = time.monotonic() + 60 + self.seconds  # the samples themselves are made before the first begins
        while True:
            try:
                if not pipe.poll(max(0.0, deadline - time.monotonic())):
                    raise _Died(current, "time limit", found)
                kind, value = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise _Died(current, "the process died", found) from None
            if kind == "error":
                raise HarnessError(value)
            if kind == "done":
                return found
            if kind == "begin":
                current = value
            else:
                found.append(value)
                current = value.sample + 1
            deadline = time.monotonic() + self.seconds

    def _ready(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs,), daemon=False)
            self._process.start()
            theirs.close()
        return self._pipe

    def close(self) -> None:
        """End the worker and the helpers that it started, which are of its group."""
        if self._pipe is None:
            return
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._pipe = self._process = None


class _Died(Exception):
    def __init__(self, sample: int, why: str, before: list[Outcome]) -> None:
        super().__init__(why)
        self.sample, self.why, self.before = sample, why, before


@contextlib.contextmanager
def watched(seconds: float) -> Iterator[Watched]:
    worker = Watched(seconds)
    try:
        yield worker
    finally:
        worker.close()
