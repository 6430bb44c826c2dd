"""Sizes and whole numbers that eager does accept, where it refuses the example's.

A number in the code may hold for one size only; lengths or indices among the inputs may not fit the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from trueport.examine.limits import within
from trueport.examine.run import run_eager
from trueport.load.job import Job, Leaf, sizes_in

_WORTH_TRYING = (1, 4, 8, 16, 3, 32, 5, 6, 2, 64, 10, 12)
_SECONDS_EACH, _SECONDS = 4.0, 12.0


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


def inputs_that_run_as_ones(job: Job) -> tuple[str, ...]:
    """The inputs of whole numbers, one or all, with which eager runs where they hold nothing but 1; () where it never
    does."""
    whole = [leaf.path for leaf in job.inputs if _is_whole(leaf.value)]
    for names in [*([name] for name in whole), whole if len(whole) > 1 else []]:
        values = [_as_ones(leaf.value) if leaf.path in names else leaf.value for leaf in job.leaves]
        if names and _accepts(job, values):
            return tuple(names)
    return ()


def _as_ones(value: object) -> object:
    return torch.ones_like(value) if isinstance(value, torch.Tensor) else value


def _is_whole(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int64, torch.int32) and value.numel() > 0


def _runs(job: Job, sizes: Mapping[str, int]) -> bool:
    return _accepts(job, resized(job, sizes))


def _accepts(job: Job, values: list[object]) -> bool:
    try:
        with within(_SECONDS_EACH):
            run_eager(job, values)
    except Exception:  # noqa: BLE001  whatever it raises, these are no better
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
