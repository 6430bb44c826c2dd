"""Functions under `functools.lru_cache` or `functools.cache`, in a trace.

A cache asks for the hash of a traced number, which has none; and what it keeps of a trace, no eager call can use. So
where a traced number reached one, the functions below the caches are called instead for the time of the trace; and a
cache that was filled meanwhile is emptied.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from trueport.capture.effects.snapshot import classes_near, rooms_near
from trueport.capture.stops.places import Places

_Cache = functools._lru_cache_wrapper


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
    """In the classes of the model's parts, in their modules, in the modules that those import, and in the classes of
    what these modules hold: `logger.warning_once(text)` is a method with a cache."""
    rooms = rooms_near(model)
    held = {base for room in rooms for value in list(vars(room).values()) for base in type(value).__mro__}
    for holder in {*classes_near(model), *held, *rooms}:
        for name, raw in list(vars(holder).items()):
            cache = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
            if not isinstance(cache, _Cache):
                continue  # not asked for anything: stand-ins for missing libraries raise whatever they are asked for
            code = getattr(cache.__wrapped__, "__code__", None)
            if code is not None and not places.is_foreign(code):
                yield _Held(holder, name, raw, cache)
