"""Functions under `functools.lru_cache` or `functools.cache`, in a trace.

A cache asks for the hash of a traced number, which has none; and what it keeps of a trace, no eager call can use. So
where a traced number reached one, the functions below the caches are called instead for the time of the trace; and a
cache that was filled meanwhile is emptied.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch

from trueport.capture.places import Places

_Cache = functools._lru_cache_wrapper
_NOT_USERS = frozenset({"torch", "numpy", "trueport", "sympy"})


@dataclass(frozen=True)
class _Held:
    """A cache, as a name of a module or a class."""

    holder: Any
    name: str
    raw: Any
    cache: Any

    @property
    def below(self) -> Any:
        """What stands for it while it is called through."""
        function = self.cache.__wrapped__
        return type(self.raw)(function) if isinstance(self.raw, (staticmethod, classmethod)) else function


def _is_users(module: str) -> bool:
    root = module.partition(".")[0]
    return root not in _NOT_USERS and root not in sys.stdlib_module_names


@contextlib.contextmanager
def caches_left_alone(model: torch.nn.Module, places: Places, through: bool) -> Iterator[None]:
    """Caches near a model hold nothing of a trace afterwards; `through` has what is below them called."""
    held = list(_near(model, places))
    misses = [each.cache.cache_info().misses for each in held]
    for each in held if through else ():
        setattr(each.holder, each.name, each.below)
    try:
        yield
    finally:
        for each, before in zip(held, misses, strict=True):
            if through:
                setattr(each.holder, each.name, each.raw)
            if each.cache.cache_info().misses != before:
                each.cache.cache_clear()


def _near(model: torch.nn.Module, places: Places) -> Iterator[_Held]:
    """In the classes of the model's parts, in their modules, and in the modules that those import."""
    parts = list(model.modules())
    classes = {base for part in parts for base in type(part).__mro__ if _is_users(base.__module__)}
    functions = {value for part in parts for value in vars(part).values() if isinstance(value, FunctionType)}
    rooms = {sys.modules[made.__module__] for made in (*classes, *functions) if made.__module__ in sys.modules}
    imported = {value for room in rooms for value in vars(room).values() if isinstance(value, ModuleType)}
    rooms |= {room for room in imported if _is_users(room.__name__)}
    for holder in (*classes, *rooms):
        for name, raw in list(vars(holder).items()):
            cache = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
            code = getattr(getattr(cache, "__wrapped__", None), "__code__", None)
            if isinstance(cache, _Cache) and code is not None and not places.is_foreign(code):
                yield _Held(holder, name, raw, cache)
