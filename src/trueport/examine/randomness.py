"""Which line draws random numbers: each operator that moved torch's generator, at its place."""

from __future__ import annotations

from typing import Any

import torch

from trueport.examine.places import user_place_here
from trueport.examine.run import run_eager
from trueport.load.job import Job
from trueport.source import Place
from trueport.torch_internals.eager_modes import EagerMode


def places_of_random_operators(job: Job) -> list[tuple[str, Place]]:
    """Operators that drew random numbers in one more run, with the user's line, each line once."""
    watch = _Watch()
    with watch:
        run_eager(job, [leaf.value for leaf in job.leaves])
    return list({place.where or place: (name, place) for name, place in watch.drawn}.values())


class _Watch(EagerMode):
    """Notes operators that move the generator. The tag alone is not enough: attention has it with dropout 0, too."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[str, Place]] = []

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        before = torch.get_rng_state()
        result = func(*args, **kwargs)
        if not torch.equal(before, torch.get_rng_state()):
            self.drawn.append((func.overloadpacket.__name__, user_place_here()))
        return result
