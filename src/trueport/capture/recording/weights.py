"""The tensors that the model owns, found when the trace first meets them, and named as in its `state_dict`."""

from __future__ import annotations

from typing import Any

import torch

from trueport.capture.graph import Value, Weight, WeightKind
from trueport.capture.recording.held import held_by

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
