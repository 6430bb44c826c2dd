"""The user's model as it was: what tracing sets on modules is seen, and undone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from trueport.capture.nearby import classes_near, rooms_near
from trueport.source import Where
from trueport.torch_internals import FakeTensor, FunctionalTensor

_TENSOR_DICTS = ("_parameters", "_buffers")
_DEPTH = 4
_FEW = 256


@dataclass(frozen=True, slots=True)
class Rebound:
    """An attribute that forward set to something else: `self.cache = y`, `self.count += 1`."""

    name: str
    before: Any
    after: Any


class Snapshot:
    """Shallow copies of the attributes of every module, and of the lists and dicts that they hold."""

    def __init__(self, model: torch.nn.Module) -> None:
        # A scripted module keeps its attributes in C++, where Python code cannot set them.
        scripted = torch.jit.ScriptModule
        self._modules = {path: m for path, m in model.named_modules() if not isinstance(m, scripted)}
        self._attributes = {path: dict(vars(m)) for path, m in self._modules.items()}
        self._containers: dict[int, tuple[Any, Any]] = {}
        for held in self._attributes.values():
            for value in held.values():
                self._remember(value, _DEPTH)

    def _remember(self, value: Any, depth: int) -> None:
        if depth == 0 or id(value) in self._containers or isinstance(value, torch.nn.Module):
            return
        if isinstance(value, dict):
            self._containers[id(value)] = (value, dict(value))
            inner = list(value.values())
        elif isinstance(value, list):
            self._containers[id(value)] = (value, list(value))
            inner = value
        elif isinstance(value, set):
            self._containers[id(value)] = (value, set(value))
            return
        else:
            return
        for item in inner:
            self._remember(item, depth - 1)

    def rebound(self) -> list[Rebound]:
        """What forward left changed: attributes, and buffers or parameters that it replaced."""
        found = []
        for path, module in self._modules.items():
            prefix = f"{path}." if path else ""
            before = self._attributes[path]
            for name, now in vars(module).items():
                if name not in before or now is not before[name]:
                    found.append(Rebound(prefix + name, before.get(name), now))
            for registry in _TENSOR_DICTS:
                was = self._containers[id(vars(module)[registry])][1]
                for name, now in vars(module)[registry].items():
                    if now is not was.get(name):
                        found.append(Rebound(prefix + name, was.get(name), now))
        return found + self._changed_containers()

    def _changed_containers(self) -> list[Rebound]:
        owned = {id(vars(m)[r]) for m in self._modules.values() for r in (*_TENSOR_DICTS, "_modules")}
        changed = []
        for path, held in self._attributes.items():
            for name, value in held.items():
                if id(value) in self._containers and id(value) not in owned and not name.endswith("_hooks"):
                    container, was = self._containers[id(value)]
                    if not _same_items(container, was):
                        changed.append(Rebound(f"{path}.{name}" if path else name, was, container))
        return changed

    def restore(self) -> None:
        """Put every attribute and every container back."""
        for path, module in self._modules.items():
            vars(module).clear()
            vars(module).update(self._attributes[path])
        for container, was in self._containers.values():
            if _same_items(container, was):
                continue
            _fill(container, was)


class Surroundings:
    """Lists, dicts and sets that are names of the user's modules and classes, such as a cache of grids by size, and the
    names that forward may bind anew (`global grid`). What a trace puts there, no eager call can use."""

    def __init__(self, model: torch.nn.Module) -> None:
        near: list[type | ModuleType] = [*classes_near(model), *rooms_near(model)]
        self._holders = [(holder, dict(vars(holder))) for holder in near]
        self._containers = [
            (value, type(value)(value)) for _, names in self._holders for value in _containers_in(names)
        ]
        self.users = [
            value
            for holder, names in self._holders
            if _is_users_own(holder)
            for value in _containers_in(names)
            if len(value) <= _FEW
        ]
        """Those of files that the user wrote, which the arms of a branch may change; no vocabularies."""

    def restore(self) -> None:
        for container, was in self._containers:
            if not _same_items(container, was):
                _fill(container, was)
        for holder, names in self._holders:
            for name, value in list(vars(holder).items()):
                if _is_of_a_trace(value):
                    setattr(holder, name, names[name]) if name in names else delattr(holder, name)


def _containers_in(names: dict[str, Any]) -> list[Any]:
    return [v for name, v in names.items() if type(v) in (dict, list, set) and not name.startswith("__")]


def _is_users_own(holder: type | ModuleType) -> bool:
    room = sys.modules.get(holder.__module__) if isinstance(holder, type) else holder
    file = getattr(room, "__file__", None)
    return file is not None and not Where(file, 1).is_installed


def _is_of_a_trace(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_of_a_trace, value))
    return isinstance(value, (FakeTensor, FunctionalTensor, torch.SymInt, torch.SymFloat, torch.SymBool))


def _fill(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list) else container.update(content)


def _same_items(now: Any, was: Any) -> bool:
    if isinstance(now, dict):
        return now.keys() == was.keys() and all(now[k] is was[k] for k in was)
    if isinstance(now, list):
        return len(now) == len(was) and all(a is b for a, b in zip(now, was, strict=True))
    return bool(now == was)
