"""What a model holds besides its modules: lists and dicts in attributes, and objects of the user's own classes.

self.feats = {}                      model.feats
self.hook = SaveOutput(self.encoder) the attributes of model.hook, which a forward hook sets
layer.register_forward_hook(grab)    the object behind a hook, or what its closure holds
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.values.stores import CELL, store_of
from trueport.load.values import attributes_of

_REGISTRIES = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True, slots=True)
class HeldContainer:
    """A container that a module reaches: a list, dict, set or deque, or the `__dict__` of an object."""

    name: str
    """How the user would write it, from the model on: `feats`, `hook`, `blocks.0.caches[1]`."""
    container: Any
    of_object: bool = False
    """Whether these are the attributes of an object."""
    registry: bool = False
    """Whether torch keeps it: parameters, buffers, submodules, hooks."""
    in_closure: bool = False
    """Whether only the closure of a function leads there: no attribute, and others may know it."""

    def items(self) -> list[tuple[str, Any]]:
        """The things in it, each with its name."""
        if self.of_object:
            return [(f"{self.name}.{key}", value) for key, value in self.container.items()]
        if isinstance(self.container, dict):
            return [(f"{self.name}[{key!r}]", value) for key, value in self.container.items()]
        return [(f"{self.name}[{i}]", value) for i, value in enumerate(self.container)]


def held_by(model: torch.nn.Module) -> Iterator[HeldContainer]:
    """Every such container, once. A scripted module keeps its attributes in C++, where Python code cannot set them."""
    seen: set[int] = set()
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for name, value in vars(module).items():
            registry = name in _REGISTRIES or name.endswith("_hooks")
            yield from _within(
                value,
                HeldContainer(f"{path}.{name}" if path else name, None, registry=registry),
                limits.DEPTH_OF_ATTRIBUTES,
                seen,
            )


def _within(value: Any, at: HeldContainer, depth: int, seen: set[int]) -> Iterator[HeldContainer]:
    """What is reached from `value`, which is called and reached as `at` says."""
    if depth == 0 or id(value) in seen or isinstance(value, (torch.nn.Module, torch.Tensor)):
        return
    if isinstance(value, MethodType):
        yield from _within(value.__self__, at, depth, seen)
        return
    if isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            yield from _within(CELL.content(cell), replace(at, in_closure=True), depth - 1, seen)
        return
    store = store_of(value)
    if store is not None and store.is_structure:
        held = replace(at, container=value)
    elif attributes_of(value) and hasattr(value, "__dict__"):
        held = replace(at, container=vars(value), of_object=True)
    else:
        return
    seen.add(id(value))
    if held.of_object or (store is not None and store.can_change):
        yield held
    for name, item in held.items():
        yield from _within(item, replace(held, name=name, of_object=False), depth - 1, seen)
