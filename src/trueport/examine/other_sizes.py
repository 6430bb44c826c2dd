"""Sizes that eager does accept, where it refuses the example's: a number in the code may hold for one size only."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from trueport.examine.limits import within
from trueport.examine.run import run_eager
from trueport.load.job import Job, Leaf, sizes_in

_WORTH_TRYING = (1, 4, 8, 16, 3, 32, 5, 6, 2, 64, 10, 12)
_SECONDS_EACH, _SECONDS = 1.0, 5.0


def sizes_that_run(job: Job) -> Mapping[str, int]:
    """One free size at a time, then all of them, at the numbers that people write; {} where none of them runs."""
    names = [size.name for size in job.free_sizes]
    plans = [{name: size} for size in _WORTH_TRYING for name in names]
    plans += [dict.fromkeys(names, size) for size in _WORTH_TRYING] if len(names) > 1 else []
    giving_up = time.monotonic() + _SECONDS
    for sizes in plans:
        if time.monotonic() > giving_up:
            break
        if all(size.admits(sizes[size.name]) for size in job.free_sizes if size.name in sizes) and _runs(job, sizes):
            return sizes
    return {}


def _runs(job: Job, sizes: Mapping[str, int]) -> bool:
    try:
        with within(_SECONDS_EACH):
            run_eager(job, resized(job, sizes))
    except Exception:  # noqa: BLE001  whatever it raises, these sizes are no better
        return False
    return True


def resized(job: Job, sizes: Mapping[str, int]) -> list[object]:
    """The example at other sizes, which need not be all: its rows, repeated or fewer."""
    wanted = {**sizes_in(job.leaves, [leaf.value for leaf in job.leaves]), **sizes}
    return [_resized(leaf, wanted) for leaf in job.leaves]


def _resized(leaf: Leaf, sizes: Mapping[str, int]) -> object:
    value = leaf.value
    if not isinstance(value, torch.Tensor):
        return value
    for axis, free in leaf.axes.items():
        if value.shape[axis] not in (0, length := free.length(sizes)):
            value = value.index_select(axis, torch.arange(length) % value.shape[axis])
    return value
