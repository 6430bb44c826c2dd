"""`isinstance` and `type`, lent to the modules of the user's code for the time of a trace.

`isinstance(n, int)` and `type(n) is float` decide without asking the number, so nothing would tell that their function
has to be rewritten. A name in a module goes before the builtin of that name: the user's modules, and those of the
model's classes, have one that knows what traced numbers stand for. It is taken back when the trace ends, and is the
builtin on other threads.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Iterator
from types import GenericAlias, ModuleType
from typing import Any

import torch

from trueport.capture.python.builtin_functions import is_instance, type_of
from trueport.capture.values.maybe import asked, kind_asked
from trueport.rewrite.running.runtime import TRACE
from trueport.source import Where

_NOT_USERS = (torch.__path__[0], sys.base_prefix, "<")


@contextlib.contextmanager
def lent_builtins(model: torch.nn.Module) -> Iterator[None]:
    lent = []
    for module in _modules(model):
        for name, stand_in in _LENT.items():
            if name not in vars(module):
                vars(module)[name] = stand_in
                lent.append((vars(module), name))
    try:
        yield
    finally:
        for names, name in lent:
            names.pop(name, None)


def _isinstance(value: Any, kinds: Any) -> Any:
    if TRACE.trace is None:
        return builtins.isinstance(value, kinds)
    return asked(value, lambda candidate: is_instance(candidate, kinds))


class _AskingType(type):
    """Makes a `type` that is the builtin in every way but one: what it says of a traced value."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and TRACE.trace is not None:
            return kind_asked(args[0], type_of)
        return type(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return builtins.isinstance(instance, type)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type)


_TYPE = _AskingType("type", (type,), {"__class_getitem__": classmethod(GenericAlias)})
_LENT = {"isinstance": _isinstance, "type": _TYPE}


def _modules(model: torch.nn.Module) -> Iterator[ModuleType]:
    """The modules that are not installed, and those of the model's own classes."""
    wanted = {type(module).__module__ for module in model.modules()}
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if name == "__main__" or (builtins.isinstance(file, str) and _is_users(name, file, wanted)):
            yield module


def _is_users(name: str, file: str, wanted: set[str]) -> bool:
    if name.partition(".")[0] in ("torch", "trueport") or file.startswith(_NOT_USERS[0]):
        return False
    return name in wanted or not (Where(file, 1).is_installed or file.startswith(_NOT_USERS[1:]))
