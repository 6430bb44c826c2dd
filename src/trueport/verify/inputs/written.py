"""The numbers that the user's code compares with, as they stand in the source of what a run of the model may call.

Where the plan of a check comes from the captured graph, a comparison that capture has lost would not be in the plan
either, and nobody would draw its number. The source has it still, and costs no run.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Sequence
from itertools import islice
from types import FunctionType
from typing import Any

from torch import nn

from trueport.rewrite.running.probe_runtime import Site
from trueport.source import Where
from trueport.source.comparisons import compared_numbers
from trueport.torch_internals import TORCH_FOLDER

_MOST = 200
"""Functions that are read."""
_INSTANCES = 4
"""Modules of one class of which the attributes are read: layers mostly have the same."""


def numbers_written(model: nn.Module) -> tuple[float, ...]:
    """In the forward of each of its modules, and in the functions and methods that those name."""
    waiting: list[tuple[FunctionType, type]] = []
    seen: set[FunctionType] = set()

    def add(function: Any, owner: type) -> None:
        found = inspect.unwrap(function) if callable(function) else None
        if isinstance(found, FunctionType) and found not in seen and _is_theirs(found) and len(seen) < _MOST:
            seen.add(found)
            waiting.append((found, owner))

    for owner in dict.fromkeys(type(module) for module in model.modules()):
        add(owner.forward, owner)
    numbers: dict[float, None] = {}
    while waiting:
        function, owner = waiting.pop(0)
        code = function.__code__
        numbers.update(dict.fromkeys(compared_numbers(code.co_filename, code.co_firstlineno)))
        for name in code.co_names:
            add(function.__globals__.get(name), owner)
            add(inspect.getattr_static(owner, name, None), owner)
    return tuple(numbers)


def numbers_named(site: Site, model: nn.Module) -> tuple[float, ...]:
    """What stands behind the names in a test: `length > self.config.max_length`, `x.max() > LIMIT`."""
    try:
        test = ast.parse(site.text, mode="eval")
    except (SyntaxError, ValueError):  # what decides is no expression by itself
        return ()
    owner, _, _ = site.function.rpartition(".")
    modules = (each for each in model.modules() if any(kind.__qualname__ == owner for kind in type(each).__mro__))
    holders = list(islice(modules, _INSTANCES))
    outer = next((vars(each) for each in list(sys.modules.values()) if getattr(each, "__file__", "") == site.file), {})
    found: dict[float, None] = {}
    for node in ast.walk(test):
        match ast.unparse(node).split(".") if isinstance(node, ast.Attribute | ast.Name) else []:
            case ["self", *path] if all(part.isidentifier() for part in path):
                values = [_behind(holder, path) for holder in holders]
            case [name, *path] if name in outer and all(part.isidentifier() for part in path):
                values = [_behind(outer[name], path)]
            case _:
                continue
        found.update(dict.fromkeys(each for each in values if type(each) in (int, float)))
    return tuple(found)


def _behind(value: Any, path: Sequence[str]) -> Any:
    """What a chain of attributes leads to; None where a property is on the way, which may do anything."""
    for name in path:
        if isinstance(inspect.getattr_static(value, name, None), property):
            return None
        value = getattr(value, name, None)
    return value


def _is_theirs(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (file.startswith(TORCH_FOLDER) or Where(file, 1).is_standard)
