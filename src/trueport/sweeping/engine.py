"""The run: entries to an executor, rows from it.

Who runs a model is not our business: threads here (each model is a process anyway), dask's workers, or any
`concurrent.futures.Executor`. A worker writes the row of a model before it says that it is done, so what is asked of an
executor is little: to run a function somewhere, now or again.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.report.versions import installed_versions
from trueport.sweeping.entries import Entry, part_of
from trueport.sweeping.ledger import Ledger
from trueport.sweeping.page import sweep_page
from trueport.sweeping.rows import Outcome, SweepRow
from trueport.sweeping.work import run_entry

MOST_LOSSES = 3
"""How often the worker of a model may be lost before the model itself is taken to be the reason."""

MOST_TOLD = 16
"""Names in what is told of a run's progress."""


@dataclass
class SweepProgress:
    """How far a sweep is, for who shows it."""

    total: int
    done: dict[str, SweepRow] = field(default_factory=dict)
    kept: int = 0
    """Rows of an earlier run."""
    running: tuple[str, ...] = ()
    """Some of what was handed out and is not done; on a cluster some of it still waits."""


Tell = Callable[[SweepProgress], None]


def sweep(
    entries: Sequence[Entry],
    out: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    jobs: int = 2,
    shard: str | None = None,
    resume: bool = True,
    peers: Sequence[str] = (),
    tell: Tell = lambda told: None,
) -> list[SweepRow]:
    """Export and check many models, each in a process of its own.

    Args:
        entries: The models; `read_entries` reads them from a TOML file.
        out: A folder, or a URL of fsspec, for rows, reports and the page. With workers on other machines, a place that
            they can write to.
        executor: Who runs them. None: `jobs` threads here.
        jobs: How many models run at a time, where no executor is given.
        shard: `"3/16"`: only the third of sixteen parts. Parts with one `out` make one ledger: run it once more
            without a shard, and all rows are there.
        resume: Take rows that are there for the same entry, versions and options.
        peers: Other exporters to run beside ours: `"dynamo"`, `"torchscript"`.
        tell: Called after each model.

    Returns:
        The rows, in the order of the entries.

    Raises:
        UsageError: `entries`, `out` or `shard` mean nothing.

    Example:
        >>> rows = trueport.sweep(read_entries(Path("zoo.toml")), "out/", jobs=4)
    """
    if not isinstance(entries, Sequence) or not all(isinstance(each, Entry) for each in entries):
        fix = 'read them from a file: trueport.sweeping.entries.read_entries(Path("zoo.toml"))'
        raise UsageError([UsageFault(message="entries is no list of Entry", fix=fix)])
    chosen = list(entries) if shard is None else part_of(entries, shard)
    ledger, versions = Ledger(out), installed_versions()
    keys = {entry.key(versions, peers): entry for entry in chosen}
    told = SweepProgress(len(keys))
    if resume:
        told.done |= {key: row for key in keys if (row := ledger.find(key)) is not None}
        told.kept = len(told.done)
    waiting = {key: entry for key, entry in keys.items() if key not in told.done}
    with contextlib.ExitStack() as stack:
        runner = executor or stack.enter_context(ThreadPoolExecutor(jobs))
        work = _Work(runner, ledger.place, dict(versions), tuple(peers))
        tell(told)
        for key, row in work.run(waiting, jobs if executor is None else None):
            told.done[key], told.running = row, work.running
            tell(told)
    rows = [told.done[key] for key in keys]
    ledger.close(rows, sweep_page(rows))
    return rows


def run_and_keep(entry: Entry, place: str, versions: Mapping[str, str], peers: Sequence[str]) -> SweepRow:
    """Runs on a worker. Where another worker was quicker, its row is taken: nothing is run twice that was finished."""
    ledger = Ledger(place)
    if (found := ledger.find(entry.key(versions, peers))) is not None:
        return found
    row, report = run_entry(entry, versions, peers)
    ledger.add(row, report)
    return row


@dataclass
class _Work:
    """Entries on their way through an executor."""

    executor: Executor
    place: str
    versions: dict[str, str]
    peers: tuple[str, ...]
    futures: dict[Future[SweepRow], str] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)

    done: SimpleQueue[Future[SweepRow]] = field(default_factory=SimpleQueue)
    """As they end. To wait for any of ten thousand futures takes the lock of each, every time."""

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self.entries[key].name for key in islice(self.futures.values(), MOST_TOLD))

    def run(self, entries: Mapping[str, Entry], at_once: int | None) -> Iterator[tuple[str, SweepRow]]:
        """`at_once`: how many to hand out at a time; None: all, and the executor has its own order."""
        self.entries, left = dict(entries), deque(entries)
        while left or self.futures:
            while left and (at_once is None or len(self.futures) < at_once):
                self._submit(left.popleft())
            future = self.done.get()
            key = self.futures.pop(future)
            if (row := self._row(key, future)) is not None:
                yield key, row
            else:
                left.append(key)

    def _submit(self, key: str) -> None:
        try:
            future = self.executor.submit(run_and_keep, self.entries[key], self.place, self.versions, self.peers)
        except RuntimeError as ended:  # a pool whose process died takes nothing more
            raise UsageError([_lost(ended)]) from None
        self.futures[future] = key
        future.add_done_callback(self.done.put)

    def _row(self, key: str, future: Future[SweepRow]) -> SweepRow | None:
        """None: the worker was lost, and the model is to be run again."""
        try:
            return future.result()
        except (CancelledError, OSError, RuntimeError) as lost:
            entry = self.entries[key]
            self.losses[key] = self.losses.get(key, 0) + 1
            if self.losses[key] < MOST_LOSSES:
                return None
            row = SweepRow(
                name=entry.name,
                key=key,
                target=entry.target,
                outcome=Outcome.CRASHED,
                message=f"its worker was lost {MOST_LOSSES} times: {type(lost).__name__}: {lost}",
                versions=self.versions,
            )
            Ledger(self.place).add(row, "")
            return row


def _lost(ended: Exception) -> UsageFault:
    return UsageFault(
        message=f"the executor takes no more work ({type(ended).__name__}: {ended}); what is done is kept",
        fix="run the same command again: it goes on where it stopped",
    )
