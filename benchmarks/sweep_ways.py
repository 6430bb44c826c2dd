"""`python -m benchmarks.sweep_ways`: the same sweep in three ways gives the same verdicts.

Models of transformers by name, drawn by a seed: by local processes (`-j 2`), on dask with two workers of which one is
killed in the middle, and as two shards that are merged. What was finished before the worker was killed must not have
been run again.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.zoo.names import of_transformers
from trueport.sweeping import Entry, SweepRow, sweep
from trueport.sweeping.engine import SweepProgress

Way = Callable[[list[Entry], Path], list[SweepRow]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep_ways", description=__doc__)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args(arguments)
    results.circumstances()
    names = random.Random(options.seed).sample(of_transformers(), options.models)
    entries = [Entry(target=name, name=name, timeout=900) for name in names]
    found, spent = {}, {}
    for title, way in WAYS.items():
        with tempfile.TemporaryDirectory() as place:
            began = time.perf_counter()
            found[title] = way(entries, Path(place))
            spent[title] = time.perf_counter() - began
            print(f"{title}: {spent[title]:.0f} s", file=sys.stderr, flush=True)
    told = {title: [(row.outcome.value, row.code) for row in rows] for title, rows in found.items()}
    same = [len({of[index] for of in told.values()}) == 1 for index in range(len(names))]
    rows = [
        [name, *(" ".join(of[index]).strip() for of in told.values()), "" if same[index] else "differs"]
        for index, name in enumerate(names)
    ]
    text = f"{sum(same)} of {len(names)} models have the same verdict in all ways.\n\n" + results.table(
        ["model", *WAYS, ""], rows
    )
    print(text)
    title = "# The same sweep in three ways"
    results.keep("sweep_ways", {"told": told, "seconds": spent}, f"{title}\n\n{(__doc__ or '').strip()}\n\n{text}")
    return 0 if all(same) else 1


def _processes(entries: list[Entry], place: Path) -> list[SweepRow]:
    return sweep(entries, place, jobs=2)


def _dask(entries: list[Entry], place: Path) -> list[SweepRow]:
    from distributed import Client, LocalCluster

    before: dict[str, int] = {}

    def kill(told: SweepProgress) -> None:
        if len(told.done) >= max(1, len(entries) // 3) and not before:
            before.update(_written(place))
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        rows = sweep(entries, place, executor=client.get_executor(retries=3, pure=False), tell=kill)
    assert before and before.items() <= _written(place).items(), "a model that was finished was run again"
    return rows


def _shards(entries: list[Entry], place: Path) -> list[SweepRow]:
    for shard in ("1/2", "2/2"):
        sweep(entries, place, jobs=1, shard=shard)
    before = _written(place)
    rows = sweep(entries, place)
    assert before == _written(place), "a model that was finished was run again"
    return rows


WAYS: dict[str, Way] = {"-j 2": _processes, "dask, a worker killed": _dask, "two shards": _shards}


def _written(place: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in (place / "rows").iterdir()}


if __name__ == "__main__":
    sys.exit(main())
