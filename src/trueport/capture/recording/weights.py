"""The tensors that the model owns, found when the trace first meets them, and named as in its `state_dict`.

Real tensors that the trace meets, these and those that the model's code makes of Python numbers, are wrapped once each
(adopted), and known by the weight that they are: `self.w` and `self.w.data` are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from trueport.capture.recording.held import held_by
from trueport.capture.recording.memory import set_value
from trueport.graph.regions import Value, Weight, WeightKind
from trueport.torch_internals import FakeTensor, FunctionalTensor, fake_from_real

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer


MemoryKey = tuple[Any, ...]


class Owned:
    """Names for the model's tensors, and the weights that the trace has used so far.

    Tensors are known by their memory, not by their Python object: `self.w` and `self.w.data` are the same weight.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._names: dict[MemoryKey, tuple[str, WeightKind]] = {}
        self._alive: list[torch.Tensor] = []
        self.used: dict[MemoryKey, Weight] = {}
        self._taken: set[str] = set()
        self._constants = 0
        for name, parameter in model.named_parameters(remove_duplicate=False):
            self._name(parameter, name, WeightKind.PARAMETER)
        for name, buffer in model.named_buffers(remove_duplicate=False):
            self._name(buffer, name, WeightKind.BUFFER)
        attributes = (
            (f"{path}.{name}" if path else name, held)
            for path, module in model.named_modules()
            for name, held in vars(module).items()
        )
        containers = (each for each in held_by(model) if not each.registry and not each.in_closure)
        for name, held in (*attributes, *(item for each in containers for item in each.items())):
            if isinstance(held, torch.Tensor):
                self._name(held, name, WeightKind.ATTRIBUTE)

    def _name(self, tensor: torch.Tensor, name: str, kind: WeightKind) -> None:
        self._alive.append(tensor)
        self._names.setdefault(memory_key(tensor), (name, kind))

    def weight(self, tensor: torch.Tensor, made_in_trace: bool) -> Weight:
        """The weight for a real tensor. `made_in_trace` tells `torch.tensor(...)` in forward from an older tensor."""
        key = memory_key(tensor)
        known = self.used.get(key)
        if known is None:
            self._alive.append(tensor)
            name, kind = self._names.get(key, ("", WeightKind.CONSTANT))
            if made_in_trace or not name:
                name, kind = self._constant_name(), WeightKind.CONSTANT
            value = Value(tensor.dtype, tuple(tensor.shape), name)
            known = self.used[key] = Weight(name, kind, value, tensor)
        return known

    def _constant_name(self) -> str:
        self._constants += 1
        return f"constant_{self._constants}"


def memory_key(tensor: torch.Tensor) -> MemoryKey:
    """Equal for two tensors that are the same numbers in the same memory."""
    if tensor.layout is not torch.strided or tensor.numel() == 0 or tensor.device.type == "meta":
        return (id(tensor),)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


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
