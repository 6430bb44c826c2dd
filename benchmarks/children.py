"""Work in a process of its own, under a time limit, watched from outside."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import Any, Literal

import psutil

Phase = Callable[[str], None]
Work = Callable[..., Any]
"""Called as `work(*args, folder=Path, phase=Phase)`; `folder` is removed afterwards, whatever happened."""


class HarnessError(Exception):
    """The measuring itself failed; never counted as a result."""


@dataclass
class Ending:
    """How a child ended. `died` is empty when it returned `value`."""

    value: Any = None
    died: str = ""
    last_phase: str = ""
    wall_seconds: float = 0.0
    peak_memory: dict[str, int] = field(default_factory=dict)
    """Largest resident size in bytes seen in each phase, sampled from outside: a child that holds the GIL in native
    code could not watch itself, and a watching thread would count as its CPU time."""
    memory_at_start: dict[str, int] = field(default_factory=dict)
    tail: str = ""
    """The end of what a dead child had printed."""


def run(
    work: Work,
    *args: Any,
    limit: float,
    start: Literal["forkserver", "spawn"] = "forkserver",
    sample_memory: bool = False,
) -> Ending:
    """`forkserver`: a fork of a server that has only imported (see `preload`); `spawn`: a new interpreter."""
    context: ForkServerContext | SpawnContext
    context = multiprocessing.get_context("spawn") if start == "spawn" else multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    ending = Ending()
    with tempfile.TemporaryDirectory(prefix="trueport-bench-") as folder:
        child = context.Process(target=_child, args=(sender, work, args, folder))
        began = time.perf_counter()
        child.start()
        sender.close()
        try:
            _watch(child.pid or 0, receiver, began + limit, ending, sample_memory)
            if not ending.died:
                child.join(10)  # time to leave in order: a killed process leaks its named semaphores
        finally:
            _end_group(child.pid or 0)
            child.kill()  # for the moment before it leads its group
            child.join()
        ending.wall_seconds = time.perf_counter() - began
        if ending.died == "ended":
            code = child.exitcode or 0
            ending.died = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
        if ending.died:
            ending.tail = Path(folder, "printed.txt").read_text(errors="replace")[-500:]
    return ending


def preload(modules: list[str]) -> None:
    """What the fork server imports once. Imports only: no model is built and nothing is exported there."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)


def _watch(pid: int, receiver: Connection, deadline: float, ending: Ending, sample_memory: bool) -> None:
    process = psutil.Process(pid) if sample_memory else None
    while True:
        if process is not None:
            _sample(process, ending)
        try:
            if receiver.poll(0.005 if sample_memory else max(0.0, deadline - time.perf_counter())):
                kind, value = receiver.recv()
                if kind == "phase":
                    ending.last_phase = value
                    continue
                if kind == "error":
                    raise HarnessError(value)
                ending.value = value
                return
        except EOFError:
            ending.died = "ended"
            return
        if time.perf_counter() >= deadline:
            ending.died = "time limit"
            return


def _sample(process: psutil.Process, ending: Ending) -> None:
    try:
        resident = process.memory_info().rss
    except psutil.Error:
        return  # it is gone; the pipe will say so
    ending.memory_at_start.setdefault(ending.last_phase, resident)
    ending.peak_memory[ending.last_phase] = max(resident, ending.peak_memory.get(ending.last_phase, 0))


def _end_group(pid: int) -> None:
    """The child leads a group of its own, so that helpers it started go with it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # already gone, or it died before it made its group


def _child(sender: Connection, work: Work, args: tuple[Any, ...], folder: str) -> None:
    os.setsid()
    printed = os.open(os.path.join(folder, "printed.txt"), os.O_CREAT | os.O_WRONLY)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    try:
        value = work(*args, folder=Path(folder), phase=lambda name: sender.send(("phase", name)))
    except BaseException:
        sender.send(("error", traceback.format_exc()))
        raise
    sender.send(("value", value))
