"""The user's classes and modules within reach of a model: where its caches and globals are."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

import torch

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
