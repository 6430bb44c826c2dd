"""Numbers among the attributes of an argument that the call counts up, such as how many tokens a cache has seen.

What holds for one count need not hold for the next. So where a call leaves another number than it found, the number is
an input and an output, as the tensors beside it are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from trueport.diagnostics.rules.tp205_number_frozen import NumberFrozen
from trueport.examine.run import all_leaves, copy_of, goes_on
from trueport.examine.state import Snapshot
from trueport.load.job import Job, Leaf
from trueport.load.structures import flatten
from trueport.torch_internals.eager_modes import without_compiler


def counted_up(job: Job) -> tuple[tuple[Leaf, object], ...]:
    """Such numbers of this job that forward gives back, and what the call left. One that stays in the argument alone
    could be no output, and is refused as a constant. Where eager refuses its example, there are none."""
    if not any(_may_count(leaf) for leaf in job.leaves):
        return ()
    state = Snapshot(job.model)
    try:
        values = all_leaves(job, [leaf.value for leaf in job.inputs])
        args, kwargs = arguments = job.call.build([copy_of(value) for value in values])
        with torch.no_grad(), without_compiler(), goes_on():
            outputs = job.model(*args, **kwargs)
        after: list[Any] = job.call.flatten(arguments)
    except Exception:  # noqa: BLE001  whatever the model raises; or the object has other parts now
        return ()
    finally:
        state.put_back()
    given_back = {(_attribute(leaf.path), leaf.value) for leaf in flatten(outputs)[0] if type(leaf.value) is int}
    pairs = [pair for pair in zip(job.leaves, after, strict=True) if _may_count(pair[0]) and is_counted(*pair)]
    return tuple((leaf, value) for leaf, value in pairs if (_attribute(leaf.path), value) in given_back)


def _attribute(path: str) -> str:
    return path.rpartition(".")[2]


def is_counted(leaf: Leaf, after: object) -> bool:
    return type(leaf.value) is int and type(after) is int and after != leaf.value


def right_for_one_call(counters: Sequence[tuple[Leaf, object]]) -> NumberFrozen:
    """The refusal of such numbers as constants: the next call brings another one."""
    shown = ", ".join(f"{leaf.path} is {leaf.value} before the call and {after} after it" for leaf, after in counters)
    return NumberFrozen(
        message=f"{shown}: the model would be right for this one call only",
        fix="make its class a dataclass, and its numbers are inputs, or count in a tensor; of transformers: give "
        "DynamicCache() without a config, which keeps every token and counts none (the mask leaves out what has left "
        "a window), or use trueport.generation.export",
    )


def _may_count(leaf: Leaf) -> bool:
    return leaf.inside_object and not leaf.is_input and type(leaf.value) is int
