"""The line at which forward sets an attribute that the graph does not keep."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from types import FunctionType

import torch

from trueport.capture.effects.nearby import classes_near, rooms_near
from trueport.source import Place, Where
from trueport.source.writes import line_that_writes

_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setstate__", "__deepcopy__"})


def where_set(model: torch.nn.Module, name: str) -> Place | None:
    """Where `name` (`blocks.0.cache[2].k`) is written: in the class of the module that holds it, or near the model.

    Python tells nobody that an attribute was set, so the functions that may have done it are read.
    """
    path, attributes = _split(model, name)
    for attribute in reversed(attributes):
        for function in _candidates(model, model.get_submodule(path)):
            code = function.__code__
            line = line_that_writes(code.co_filename, code.co_firstlineno, attribute)
            if line is not None:
                return Place((Where(code.co_filename, line, function.__qualname__),), path)
    return None


def _split(model: torch.nn.Module, name: str) -> tuple[str, list[str]]:
    """The path of the module, and the names that lead on from it."""
    path = max((p for p, _ in model.named_modules() if not p or name.startswith(f"{p}.")), key=len)
    rest = name.removeprefix(f"{path}.") if path else name
    return path, re.findall(r"[^\W\d]\w*", re.sub(r"\[[^]]*\]", "", rest))


def _candidates(model: torch.nn.Module, owner: torch.nn.Module) -> Iterator[FunctionType]:
    for cls in type(owner).__mro__:
        yield from _functions(vars(cls).values())
    for cls in classes_near(model):
        yield from _functions(vars(cls).values())
    for room in rooms_near(model):
        yield from _functions(vars(room).values())
        for made in vars(room).values():
            if isinstance(made, type) and made.__module__ == room.__name__:
                yield from _functions(vars(made).values())


def _functions(values: Iterable[object]) -> Iterator[FunctionType]:
    for value in list(values):
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(function, FunctionType):
            function = inspect.unwrap(function)
        if isinstance(function, FunctionType) and function.__name__ not in _MAKING and not _is_installed(function):
            yield function


def _is_installed(function: FunctionType) -> bool:
    return Where(function.__code__.co_filename, 1).is_installed
