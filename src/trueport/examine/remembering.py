"""Whether what a call gives depends on the calls before it, as eager shows when it is called many times in turn.

Forward may keep something for later calls without any of them depending on it: a table of positions that grows with the
longest sequence so far, a grid that is made anew when the picture's size changes. Such a model is a function of its
inputs all the same. A running mean is not, nor a largest value so far, which only larger values show: so inputs of
other sizes and other magnitudes are called before each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from trueport.examine.limits import within
from trueport.examine.other_sizes import resized
from trueport.examine.run import call_eagerly, run_eager
from trueport.examine.same import same_outputs
from trueport.examine.state import Snapshot
from trueport.load.job import Job, Leaf

_SECONDS_EACH, _SECONDS = 2.0, 6.0
_FEW = 3
"""Fewer inputs than that, the example among them, show nothing."""


def remembers(job: Job) -> bool | None:
    """Whether a call's answer was seen to depend on earlier calls; None where too few calls could be made to tell."""
    state = Snapshot(job.model)
    giving_up = time.monotonic() + _SECONDS
    alone: list[tuple[list[object], Any]] = []
    for values in _inputs(job):
        try:
            with within(_SECONDS_EACH):
                alone.append((values, run_eager(job, values, before=state)))
        except Exception:  # noqa: BLE001  eager decides which inputs are valid
            continue
        if time.monotonic() > giving_up:
            break
    if len(alone) < _FEW:
        return None
    try:
        with within(_SECONDS):
            return not all(same_outputs(answer, call_eagerly(job, values)) for values, answer in (*alone, *alone[::-1]))
    except Exception:  # noqa: BLE001  accepted by itself, and refused (or without end) after other calls
        return True
    finally:
        state.put_back()


def _inputs(job: Job) -> Iterator[list[object]]:
    """The example; its values made larger, negated, turned and smaller; and other sizes, longer and shorter."""
    example = [leaf.value for leaf in job.leaves]
    yield example
    yield [_changed(value, 3.0, 1.0) for value in example]
    yield [_changed(value, -1.0, 0.0) for value in example]
    yield [_changed(value, 0.5, 0.25) for value in example]
    lengths = dict(size for leaf in job.leaves for size in _free_sizes(leaf))
    for other in (lambda n: 2 * n + 1, lambda n: 1, lambda n: n + 1, lambda n: 5 * n):
        sizes = {name: other(length) for name, length in lengths.items()}
        plans = [sizes, *({name: size} for name, size in sizes.items())] if len(sizes) > 1 else [sizes]
        for plan in plans if sizes else ():
            if all(size.admits(plan[size.name]) for size in job.free_sizes if size.name in plan):
                yield [resized(leaf, plan) for leaf in job.leaves]


def _free_sizes(leaf: Leaf) -> Iterator[tuple[str, int]]:
    if isinstance(leaf.value, torch.Tensor):
        for axis, free in leaf.axes.items():
            yield free.size.name, (leaf.value.shape[axis] - free.offset) // free.multiple


def _changed(value: object, times: float, plus: float) -> object:
    """A float tensor with other values; whole numbers may be indices, and only change their places."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    turned = value.detach().flatten().roll(1).reshape(value.shape)
    return turned * times + plus if turned.is_floating_point() else turned
