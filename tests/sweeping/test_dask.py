"""The same sweep on dask's workers: the same rows, also where a worker is killed in the middle.

The entries name files that are not there. Each is a process that answers at once: this is a test of the engine and
not of the machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueport.sweeping import Entry, Outcome, engine, sweep

distributed = pytest.importorskip("distributed")


@pytest.fixture(autouse=True)
def no_waiting_for_ever() -> Iterator[None]:
    """A cluster that never answers ends the test, and not the suite."""

    def give_up(*_: Any) -> None:
        raise TimeoutError("dask gave no answer in five minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def entries(count: int) -> list[Entry]:
    return [Entry(target=f"not_there_{number}.py:Net", name=f"net {number}") for number in range(count)]


def told(rows: Any) -> list[tuple[str, Outcome, str]]:
    return [(row.name, row.outcome, row.message) for row in rows]


def test_dask_and_shards_give_what_threads_give(client: Any, tmp_path: Path) -> None:
    here = sweep(entries(3), tmp_path / "here")
    there = sweep(entries(3), tmp_path / "there", executor=client.get_executor(pure=False))
    for shard in ("1/2", "2/2"):
        sweep(entries(3), tmp_path / "parts", shard=shard)
    merged = sweep(entries(3), tmp_path / "parts")
    assert told(here) == told(there) == told(merged)
    assert {row.outcome for row in here} == {Outcome.USAGE}


def test_a_killed_worker_loses_nothing(client: Any, tmp_path: Path) -> None:
    killed: list[int] = []
    before: dict[str, float] = {}

    def kill(progress: engine.SweepProgress) -> None:
        if progress.done and not killed:
            before.update({file.name: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()})
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    rows = sweep(entries(5), tmp_path, executor=client.get_executor(pure=False), tell=kill)
    assert killed
    assert [row.outcome for row in rows] == [Outcome.USAGE] * 5
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()}
    assert before.items() <= after.items()  # what was finished was not run again


@contextlib.contextmanager
def running(role: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler or a worker as people start them. Both are gone afterwards."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{role}", "--no-dashboard", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_restarted_scheduler_loses_nothing(tmp_path: Path) -> None:
    """It forgets all that was handed out. What was done is in the rows, and the rest is handed out again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, before = f"tcp://127.0.0.1:{port}", dict[str, int]()
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", str(port))
    worker = ("worker", address, "--nthreads", "1", "--no-nanny")

    with contextlib.ExitStack() as stack:
        first = stack.enter_context(running(*scheduler))
        stack.enter_context(running(*worker))
        client = stack.enter_context(distributed.Client(address, timeout=120))

        def restart(progress: engine.SweepProgress) -> None:
            if progress.done and not before:
                first.kill()
                first.wait()
                before.update({file.name: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()})
                stack.enter_context(running(*scheduler))
                stack.enter_context(running(*worker))  # one whose scheduler is gone ends

        rows = sweep(entries(4), tmp_path, executor=client.get_executor(pure=False), tell=restart)
    assert before
    assert [row.outcome for row in rows] == [Outcome.USAGE] * 4
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()}
    assert before.items() <= after.items()  # what was finished was not run again
