"""The function objects that run a piece of code.

A frame knows its code and not its function, and decorators and closures hide functions well. Most are near: in the
module of the code, in the class of its first argument, in the model, or in the closure of one of those (`near`). Only
the garbage collector knows them all (`everywhere`), and asking it takes 0.1 s or more in a process with torch.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

_DEPTH = 6
_DEPTH_OF_OBJECTS = 2
"""How far the attributes of objects are followed; a submodule that decides is the first argument of its own method."""
_NOT_USERS = frozenset({"torch", "builtins", "typing", "abc", "enum", "collections", "numpy"})


def everywhere(*files: str) -> list[FunctionType]:
    """All functions that were made from these files, in one walk over all objects."""
    wanted = frozenset(files)
    return [o for o in gc.get_objects() if type(o) is FunctionType and o.__code__.co_filename in wanted]


def near(roots: Iterable[Any], filename: str) -> list[FunctionType]:
    """The functions made from a file that can be reached from these objects by way of names, classes and closures."""
    found: dict[int, FunctionType] = {}
    seen: dict[int, Any] = {}
    waiting = [(root, 0) for root in roots]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen or depth > _DEPTH:
            continue
        seen[id(value)] = value
        if type(value) is FunctionType and value.__code__.co_filename == filename:
            found[id(value)] = value
        waiting += [(inner, depth + 1) for inner in _within(value, depth)]
    return list(found.values())


def _within(value: Any, depth: int) -> Iterator[Any]:
    """What may hold a function of the user's, or be one."""
    if isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
        yield from vars(value).values()
    elif isinstance(value, (MethodType, staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, (property, functools.cached_property)):
        yield from (getattr(value, name, None) for name in ("fget", "fset", "func"))
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args)
    elif isinstance(value, type):
        bases = [base for base in value.__mro__ if base.__module__.partition(".")[0] not in _NOT_USERS]
        yield from (attribute for base in bases for attribute in vars(base).values())
    elif isinstance(value, dict):
        yield from dict.values(value)  # one of ours may object to being gone through
    elif not isinstance(value, ModuleType):
        try:
            attributes = object.__getattribute__(value, "__dict__")  # an object of ours may object to being looked at
        except AttributeError:
            return
        if isinstance(attributes, dict):
            yield attributes.get("__wrapped__")
            if depth < _DEPTH_OF_OBJECTS:
                yield type(value)
                yield from attributes.values()


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
