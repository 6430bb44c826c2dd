"""Real tensors that the trace meets: the model's own, and those that its code makes of Python numbers.

Each is wrapped once, and known by the weight that it is: `self.w` and `self.w.data` are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from trueport.capture.graph import Value, Weight
from trueport.capture.recording.memory import set_value
from trueport.capture.recording.weights import MemoryKey, memory_key
from trueport.torch_internals import FakeTensor, FunctionalTensor, fake_from_real

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer


class Adoption:
    """The wrappers of real tensors in one trace; `fickle` ones change from call to call, and are no constants."""

    def __init__(self, tracer: Tracer, fickle: frozenset[MemoryKey]) -> None:
        self._tracer, self._fickle = tracer, fickle
        self._adopted: dict[int, tuple[torch.Tensor, torch.Tensor, Weight]] = {}
        """By id of the real tensor: itself (kept alive), its wrapper, its weight."""
        self._by_weight: dict[int, torch.Tensor] = {}
        self._made_in_trace: set[int] = set()

    def adopt(self, real: torch.Tensor, made_in_trace: bool) -> torch.Tensor:
        known = self._adopted.get(id(real))
        if known is not None:
            return known[1]
        tracer = self._tracer
        weight = tracer.owned.weight(real, made_in_trace)
        wrapper = self._by_weight.get(id(weight))
        if wrapper is None:
            fake = fake_from_real(real, tracer.symbols.fake_mode)
            set_value(fake, weight.value)
            wrapper = self._by_weight[id(weight)] = tracer.wrap(fake)
            if memory_key(real) not in self._fickle:
                tracer.constants.holds(weight)
            if made_in_trace:
                self._made_in_trace.add(id(weight))
            elif tracer.careful:
                tracer.writes.was_there(wrapper)
        self._adopted[id(real)] = (real, wrapper, weight)
        return wrapper

    def known(self, real: torch.Tensor) -> torch.Tensor | None:
        """Its wrapper, if an operation has met it."""
        return self._adopted[id(real)][1] if id(real) in self._adopted else None

    def wrapper_of(self, weight: Weight) -> torch.Tensor | None:
        return self._by_weight.get(id(weight))

    def written(self) -> dict[str, tuple[Weight, Value]]:
        """The model's own tensors that were written in place, by name, with their last values."""
        found = {}
        for _, wrapper, weight in self._adopted.values():
            if id(weight) in self._made_in_trace:
                continue
            last = self._tracer.value(wrapper)
            if last is not weight.value:
                found[weight.name] = (weight, last)
        return found


def is_real(tensor: object) -> bool:
    return isinstance(tensor, torch.Tensor) and not isinstance(tensor, (FunctionalTensor, FakeTensor))
