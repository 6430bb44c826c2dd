"""The numbers that the user's code compares with, as they stand in the source of what a run of the model may call.

Where the plan of a check comes from the captured graph, a comparison that capture has lost would not be in the plan
either, and nobody would draw its number. The source has it still, and costs no run.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from torch import nn

from trueport.source import Where
from trueport.source.comparisons import compared_numbers
from trueport.torch_internals import TORCH_FOLDER

_MOST = 200
"""Functions that are read."""


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


def _is_theirs(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (file.startswith(TORCH_FOLDER) or Where(file, 1).is_standard)
