"""The user's model, and the classes and modules within its reach, as they were: what tracing sets there is undone."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

import torch

from trueport.capture import limits
from trueport.capture.effects.world import World
from trueport.capture.recording.held import HeldContainer, held_by
from trueport.capture.values.stores import fill, store_of
from trueport.source import Where
from trueport.torch_internals import FakeTensor, FunctionalTensor

_TENSOR_DICTS = ("_parameters", "_buffers")


@dataclass(frozen=True, slots=True)
class Rebound:
    """An attribute that forward set to something else: `self.cache = y`, `self.count += 1`."""

    name: str
    before: Any
    after: Any


class AttributeSnapshot:
    """Shallow copies of the attributes of every module, and of the containers and objects that they hold."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        # A scripted module keeps its attributes in C++, where Python code cannot set them.
        scripted = torch.jit.ScriptModule
        self._modules = {path: m for path, m in model.named_modules() if not isinstance(m, scripted)}
        self._attributes = {path: dict(vars(m)) for path, m in self._modules.items()}
        self._gradients = [(p, p.grad) for p in model.parameters() if p.requires_grad]
        for parameter, _ in self._gradients:
            parameter.grad = None  # `backward()` in forward would add to it
        self._held = [(held, _content(held.container)) for held in held_by(model)]

    def rebound(self) -> list[Rebound]:
        """What forward left changed: attributes, and buffers or parameters that it replaced."""
        found = []
        was_held = {id(held.container): was for held, was in self._held}
        for path, module in self._modules.items():
            prefix = f"{path}." if path else ""
            before = self._attributes[path]
            for name, now in vars(module).items():
                if name not in before or now is not before[name]:
                    found.append(Rebound(prefix + name, before.get(name), now))
            for registry in _TENSOR_DICTS:
                was = was_held[id(vars(module)[registry])]
                for name, now in vars(module)[registry].items():
                    if now is not was.get(name):
                        found.append(Rebound(prefix + name, was.get(name), now))
        for held, was in self._held:
            if not held.registry and not held.in_closure and not _is_same(held.container, was):
                found += _changed(held, was)
        return found

    def restore(self) -> None:
        """Put every attribute and every container back."""
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        for path, module in self._modules.items():
            vars(module).clear()
            vars(module).update(self._attributes[path])
        for held, was in self._held:
            if held.in_closure and not any(_is_of_a_trace(item) for _, item in held.items()):
                continue
            if not _is_same(held.container, was):
                fill(held.container, was)


def _changed(held: HeldContainer, was: Any) -> list[Rebound]:
    if not held.of_object:
        return [Rebound(held.name, was, held.container)]
    return [
        Rebound(f"{held.name}.{name}", was.get(name), now)
        for name, now in held.container.items()
        if name not in was or now is not was[name]
    ]


class Surroundings:
    """Lists, dicts and sets that are names of the user's modules and classes, such as a cache of grids by size, and the
    names that forward may bind anew (`global grid`). What a trace puts there, no eager call can use."""

    def __init__(self, model: torch.nn.Module) -> None:
        near: list[type | ModuleType] = [*classes_near(model), *rooms_near(model)]
        self._holders = [(holder, dict(vars(holder))) for holder in near]
        self._containers = [(value, _content(value)) for _, names in self._holders for value in _containers_in(names)]
        self.users = [
            value
            for holder, names in self._holders
            if _is_users_own(holder)
            for value in (*_containers_in(names), *_objects_in(names))
            if not isinstance(value, (dict, list, set, deque)) or len(value) <= limits.ITEMS_OF_A_GLOBAL
        ]
        """Those of files that the user wrote, which the arms of a branch may change; no vocabularies."""
        self._kept = World(self.users)

    def restore(self) -> None:
        self._kept.restore()
        for container, was in self._containers:
            if not _is_same(container, was):
                fill(container, was)
        for holder, names in self._holders:
            for name, value in list(vars(holder).items()):
                if _is_of_a_trace(value):
                    setattr(holder, name, names[name]) if name in names else delattr(holder, name)


def _containers_in(names: dict[str, Any]) -> list[Any]:
    return [v for name, v in names.items() if type(v) in (dict, list, set, deque) and not name.startswith("__")]


def _objects_in(names: dict[str, Any]) -> list[Any]:
    """What else of the user's may keep something: objects, classes, and functions with attributes or with lists as
    defaults."""
    return [v for v in names.values() if _keeps_something(v)]


def _keeps_something(value: Any) -> bool:
    match value:
        case FunctionType():
            return bool(vars(value)) or any(isinstance(each, (list, dict, set)) for each in value.__defaults__ or ())
        case ModuleType() | torch.Tensor() | torch.nn.Module():
            return False
    kind = value if isinstance(value, type) else type(value)
    room = sys.modules.get(kind.__module__)
    return room is not None and hasattr(kind, "__dict__") and _is_users_own(room) and not issubclass(kind, Enum)


def _is_users_own(holder: type | ModuleType) -> bool:
    room = sys.modules.get(holder.__module__) if isinstance(holder, type) else holder
    file = getattr(room, "__file__", None)
    return file is not None and not Where(file, 1).is_installed


def _is_of_a_trace(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_of_a_trace, value))
    return isinstance(value, (FakeTensor, FunctionalTensor, torch.SymInt, torch.SymFloat, torch.SymBool))


def _content(container: Any) -> Any:
    store = store_of(container)
    return None if store is None else store.content(container)


def _is_same(container: Any, was: Any) -> bool:
    store = store_of(container)
    return store is None or store.same(container, was)


_NOT_USERS = frozenset({"torch", "numpy", "trueport", "sympy"})


def is_users(module: str) -> bool:
    root = module.partition(".")[0]
    return root not in _NOT_USERS and root not in sys.stdlib_module_names


def classes_near(model: torch.nn.Module) -> set[type]:
    """The classes of the model's parts, and those that they inherit from."""
    return {base for part in model.modules() for base in type(part).__mro__ if is_users(base.__module__)}


def rooms_near(model: torch.nn.Module) -> set[ModuleType]:
    """The modules of those classes, and those that they import or import something from."""
    functions = {value for part in model.modules() for value in vars(part).values() if isinstance(value, FunctionType)}
    rooms = {
        sys.modules[made.__module__] for made in (*classes_near(model), *functions) if made.__module__ in sys.modules
    }
    names = {name for room in rooms for value in list(vars(room).values()) if (name := _home(value)) is not None}
    return rooms | {sys.modules[name] for name in names if is_users(name) and name in sys.modules}


def _home(value: object) -> str | None:
    """The module that a name of another module comes from."""
    if isinstance(value, ModuleType):
        return value.__name__
    return value.__module__ if isinstance(value, (FunctionType, type)) else None
