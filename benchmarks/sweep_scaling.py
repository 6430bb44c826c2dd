"""`python -m benchmarks.sweep_scaling`: what a sweep of 10,000 models over 200 workers would cost beside the models.

Two things are measured here, and the rest follows from them by simulation. (1) The engine: entries whose rows are
there already go through the real code, `trueport.sweep` on dask, and each comes back at once. What the process of the
scheduler and the client spends on one is the time in which it can serve no other; its memory grows with the futures.
(2) The models: the processor's seconds of each in the ledger of `python -m benchmarks.zoo`.

The simulation is of dask's way: a worker that is free gets the next model from the scheduler, which serves one at a
time. With each model a worker is lost with a chance of 1 %, at any moment of it; the model begins anew on another, and
the worker is back after the time that a new one takes.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import psutil

from benchmarks import results
from benchmarks.zoo.__main__ import kept
from trueport.report.versions import installed_versions
from trueport.sweeping import Entry, Outcome, SweepRow, sweep
from trueport.sweeping.ledger import Ledger

STARTING = 6.0
"""Seconds that each model needs beside its export, for a new process with torch and transformers in it: the row of a
small model in a sweep has 6 s in all."""
COMING_BACK = 30.0
"""Seconds until a worker that was lost is replaced."""
ROUND_TRIP = 0.002
"""Between a worker and the scheduler, in one building."""


@dataclass(frozen=True)
class Engine:
    """Measured."""

    tasks: int
    seconds_a_task: float
    """Of the processor, in the process that is client and scheduler: here one waits for the other."""
    seconds_a_task_on_workers: float
    memory_a_task: float
    """Bytes, of the same process."""


@dataclass(frozen=True)
class Simulated:
    makespan: float
    useful: float
    """Seconds of all models together."""
    lost: float
    """Seconds of models that were begun anew."""
    waiting: float
    """Seconds in which workers waited for the scheduler."""
    scheduler_busy: float
    """The part of the makespan."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    engine = measure(options.tasks)
    print(engine, file=sys.stderr)
    seconds = model_seconds()
    text, content = report(engine, seconds, options.models, options.workers, options.losses)
    print(text)
    results.keep(
        "sweep_scaling", content, f"# A sweep of many models on many workers\n\n{(__doc__ or '').strip()}\n\n{text}"
    )
    return 0


def measure(tasks: int) -> Engine:
    """Rows are there for all; so the workers find them, and run nothing."""
    from distributed import Client, LocalCluster

    versions = installed_versions()
    entries = [Entry(target=f"models/model_{number}.py:Net", name=f"model {number}") for number in range(tasks)]
    here = psutil.Process()
    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(place)
        for entry in entries:
            key = entry.key(versions)
            ledger.add(SweepRow(name=entry.name, key=key, target=entry.target, outcome=Outcome.FAITHFUL), "")
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            sweep(entries[:20], place, executor=client.get_executor(pure=False), resume=False)
            memory, spent = here.memory_info().rss, time.process_time()
            before = sum(client.run(time.process_time).values())
            most = memory

            def watch(told: object) -> None:
                nonlocal most
                if next(count) % 200 == 0:
                    most = max(most, here.memory_info().rss)

            count = itertools.count()
            sweep(entries, place, executor=client.get_executor(pure=False), resume=False, tell=watch)
            spent = time.process_time() - spent
            on_workers = sum(client.run(time.process_time).values()) - before
    return Engine(tasks, spent / tasks, on_workers / tasks, (most - memory) / tasks)


def model_seconds() -> list[float]:
    """The processor's seconds of each model of the last zoo: made, exported and checked."""
    rows = [of["trueport"] for of in kept().values() if "trueport" in of]
    return [STARTING + row.build_seconds + row.judgement.cpu_seconds for row in rows if row.judgement is not None]


def simulate(
    seconds: Sequence[float], models: int, workers: int, losses: float, service: float, seed: int = 18
) -> Simulated:
    """Each event is a worker that asks for a model; the scheduler answers one after the other."""
    chance = random.Random(seed)
    waiting = [chance.choice(seconds) for _ in range(models)]
    useful, lost, idle, served, busy, end = sum(waiting), 0.0, 0.0, 0.0, 0.0, 0.0
    free = [(0.0, number) for number in range(workers)]
    pending: list[tuple[float, float]] = []
    """Models whose worker was lost: from when on they can be given out again."""
    while waiting or pending:
        at, worker = heapq.heappop(free)
        if waiting:
            model = waiting.pop()
        else:
            ready, model = heapq.heappop(pending)
            at = max(at, ready)
        start = max(at, served) + service
        served, busy = start, busy + service
        start += ROUND_TRIP
        idle += start - at
        if chance.random() < losses:
            done = chance.random() * model
            lost += done
            heapq.heappush(pending, (start + done, model))
            heapq.heappush(free, (start + done + COMING_BACK, worker))
        else:
            end = max(end, start + model)
            heapq.heappush(free, (start + model, worker))
    return Simulated(end, useful, lost, idle, busy / end)


def report(
    engine: Engine, seconds: Sequence[float], models: int, workers: int, losses: float
) -> tuple[str, dict[str, object]]:
    rows, found = [], {}
    for many in (workers // 4, workers, 4 * workers, 16 * workers, 64 * workers):
        whole = simulate(seconds, max(models, 20 * many), many, losses, engine.seconds_a_task)
        ideal = simulate(seconds, max(models, 20 * many), many, losses, 0.0)
        found[str(many)] = {
            **asdict(whole),
            "models": max(models, 20 * many),
            "makespan_without_engine": ideal.makespan,
        }
        rows.append(
            [
                many, max(models, 20 * many), f"{whole.makespan / 60:.1f}", f"{whole.useful / many / 60:.1f}",
                f"{100 * (whole.makespan / ideal.makespan - 1):.2f} %", f"{100 * whole.lost / whole.useful:.2f} %",
                f"{100 * (whole.makespan * many / whole.useful - 1):.1f} %", f"{100 * whole.scheduler_busy:.1f} %",
            ]
        )  # fmt: skip
    mean = statistics.mean(seconds)
    header = "workers|models|minutes|models alone, min|engine|done twice|all overhead|scheduler busy".split("|")
    told = (
        f"Measured: {engine.tasks} entries through the engine, {1000 * engine.seconds_a_task:.2f} ms of the processor "
        f"each in the process that is scheduler and client, {1000 * engine.seconds_a_task_on_workers:.2f} ms on the "
        f"workers, {engine.memory_a_task / 1024:.1f} kB of memory each: "
        f"{engine.memory_a_task * models / 2**20:.0f} MB for {models}. "
        f"{len(seconds)} models of the zoo: {mean:.1f} s on average, the slowest {max(seconds):.0f} s.\n\n"
        "*engine* is how much longer the run takes than with a scheduler that needs no time; *done twice* is what lost "
        "workers had done; *all overhead* has the wait for the last models too.\n\n"
        f"The scheduler breaks first: it is busy all the time at {mean / engine.seconds_a_task:.0f} workers."
    )
    content: dict[str, object] = {"engine": asdict(engine), "models": len(seconds), "mean": mean, "simulated": found}
    return f"{results.table(header, rows)}\n\n{told}", content


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep_scaling", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000, help="entries that go through the engine")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--losses", type=float, default=0.01, help="the chance that a model's worker is lost")
    return parser


if __name__ == "__main__":
    sys.exit(main())
