"""`trueport sweep`: many models, each a row; and what changed between two sweeps."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trueport.cli.outcome import Exit, reader_may_leave, told_plainly
from trueport.cli.request import usage_error
from trueport.source import visible

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from trueport.sweeping.engine import SweepProgress

_INTERVAL = 10.0
"""Seconds between two lines of progress."""


class _RunUnlessNamed(click.Group):
    """`trueport sweep zoo.toml` is `trueport sweep run zoo.toml`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in context.help_option_names:
            args = ["run", *args]
        return super().parse_args(context, args)


@click.group(cls=_RunUnlessNamed)
def sweep() -> None:
    """Export and check many models, each in a process of its own.

    \b
      trueport sweep zoo.toml -o out/
      trueport sweep diff last-night/ out/
    """


@sweep.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="PLACE", help="A folder, or a URL (s3://…), for the rows.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Models at a time.")
@click.option(
    "--on", "cluster", metavar="dask[=ADDRESS]",
    help="Run on dask: on workers of this machine, or those of a scheduler (dask=tcp://host:8786).",
)  # fmt: skip
@click.option("--shard", metavar="K/N", help="Only the K-th of N parts: for CI matrices, Slurm arrays and the like.")
@click.option("--resume/--fresh", default=True, help="Take the rows that are there, or run all again.")
@click.option(
    "--peer", "peers", multiple=True, type=click.Choice(["dynamo", "torchscript"]),
    help="Run this exporter of torch's beside ours, and verify its file. Repeatable.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing while working.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def run(
    file: Path,
    output: str,
    jobs: int,
    cluster: str | None,
    shard: str | None,
    resume: bool,
    peers: tuple[str, ...],
    quiet: bool,
    debug: bool,
) -> None:
    """Run the models that FILE lists. Each is a row in PLACE, whatever becomes of it."""
    with told_plainly(debug):
        from trueport.sweeping import Outcome, read_entries
        from trueport.sweeping import sweep as work

        entries = read_entries(file)
        with _executor(cluster, jobs) as executor:
            rows = work(
                entries, output, executor=executor, jobs=jobs, shard=shard, resume=resume, peers=peers,
                tell=(lambda told: None) if quiet else _Telling(),
            )  # fmt: skip
        counts = Counter(row.outcome for row in rows)
        with reader_may_leave():
            for row in rows:
                if row.outcome is not Outcome.FAITHFUL:
                    click.echo(
                        visible(f"{row.outcome.value} {row.name}: {row.code} {row.message} {row.where}".rstrip())
                    )
            told = ", ".join(f"{counts[each]} {each.value}" for each in Outcome if counts[each])
            click.echo(f"{len(rows)} models: {told}; {visible(output)}/report.html")
        good = counts[Outcome.FAITHFUL] == len(rows)
        ours = counts[Outcome.OUR_FAULT]
    raise SystemExit(Exit.OUR_FAULT if ours else Exit.FAITHFUL if good else Exit.FINDINGS)


@sweep.command()
@click.argument("before")
@click.argument("now")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def diff(before: str, now: str, debug: bool) -> None:
    """Say what changed from the sweep in BEFORE to the one in NOW. Exit code 1 if a model regressed."""
    with told_plainly(debug):
        from trueport.sweeping.differences import differences
        from trueport.sweeping.ledger import Ledger

        found = differences(Ledger(before).rows(), Ledger(now).rows())
        with reader_may_leave():
            for line in found.lines() or ["no differences"]:
                click.echo(visible(line))
    raise SystemExit(Exit.FINDINGS if found.regressed else Exit.FAITHFUL)


class _Telling:
    """A line on stderr now and then: how many are done, how fast, and what is running."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = float("-inf")

    def __call__(self, told: SweepProgress) -> None:
        now = time.monotonic()
        done = len(told.done)
        if now - self._last < _INTERVAL and done < told.total:
            return
        self._last = now
        fresh, minutes = done - told.kept, (now - self._began) / 60
        rate = f", {fresh / minutes:.1f} a minute" if fresh and minutes else ""
        kept = f" ({told.kept} of an earlier run)" if told.kept else ""
        running = f"; now: {', '.join(told.running[:4])}" if told.running else ""
        print(visible(f"{done} of {told.total} models{kept}{rate}{running}"), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _executor(cluster: str | None, jobs: int) -> Iterator[Executor | None]:
    """dask's workers as an executor; None: this process has its own."""
    if cluster is None:
        yield None
        return
    kind, _, address = cluster.partition("=")
    if kind != "dask":
        raise usage_error(f"--on {cluster} is unknown", fix="--on dask, or --on dask=tcp://scheduler:8786")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise usage_error("dask is not installed", fix="pip install 'trueport[sweep]'") from None
    with contextlib.ExitStack() as stack:
        try:
            where = address or stack.enter_context(
                LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
            )
            client = stack.enter_context(Client(where))
        except (OSError, ValueError) as wrong:
            raise usage_error(f"no scheduler answers at {address}: {wrong}", fix="look at the address") from None
        yield stack.enter_context(client.get_executor(retries=3, pure=False))
