"""Whether what a call gives depends on the calls before it, as eager shows when it is called many times in turn.

Forward may keep something for later calls without any of them depending on it: a table of positions that grows with the
longest sequence so far, a grid that is made anew when the picture's size changes. Such a model is a function of its
inputs all the same. A running mean is not, nor a largest value so far, which only larger values show: so inputs of
other sizes and other magnitudes are called before each other.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import torch

from trueport.examine.limits import within
from trueport.examine.other_sizes import resized
from trueport.examine.run import call_eagerly, run_eager
from trueport.examine.same import same_outputs
from trueport.examine.state import Snapshot
from trueport.load.job import Job, sizes_in

_SECONDS_EACH, _SECONDS = 2.0, 3.0
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
        with within(4 * _SECONDS):
            return not all(same_outputs(answer, call_eagerly(job, values)) for values, answer in (*alone, *alone[::-1]))
    except TimeoutError:
        return None
    except Exception:  # noqa: BLE001  accepted by itself, and refused after other calls
        return True
    finally:
        state.put_back()


def _inputs(job: Job) -> Iterator[list[object]]:
    """The example; its values made larger, negated, turned and smaller; and other sizes, longer and shorter."""
    example = [leaf.value for leaf in job.leaves]
    yield example
    resizes = _of_other_sizes(job)
    for times, plus in ((3.0, 1.0), (-1.0, 0.0), (0.5, 0.25)):
        yield from itertools.islice(resizes, 1)
        yield [_changed(value, times, plus) for value in example]
    yield from resizes


def _of_other_sizes(job: Job) -> Iterator[list[object]]:
    """The example, longer and shorter, in all of its free sizes and in each; the most telling first."""
    lengths = sizes_in(job.leaves, [leaf.value for leaf in job.leaves])
    together = [{name: other(n) for name, n in lengths.items()} for other in (_longer, _single, _much_longer)]
    plans = together + ([{name: size} for plan in together for name, size in plan.items()] if len(lengths) > 1 else [])
    for plan in plans if lengths else ():
        if all(size.admits(plan[size.name]) for size in job.free_sizes if size.name in plan):
            yield resized(job, plan)


def _longer(length: int) -> int:
    return 2 * length + 1


def _much_longer(length: int) -> int:
    return 5 * length


def _single(length: int) -> int:
    return min(length, 1)


def _changed(value: object, times: float, plus: float) -> object:
    """A float tensor with other values; whole numbers may be indices, and only change their places."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    turned = value.detach().flatten().roll(1).reshape(value.shape)
    return turned * times + plus if turned.is_floating_point() else turned
