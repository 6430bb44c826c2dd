"""`isinstance`, lent to the modules of the user's code for the time of a trace.

`isinstance(n, int)` decides without asking the number, so nothing would tell that its function has to be rewritten. A
name in a module goes before the builtin of that name: the user's modules, and those of the model's classes, have one
that knows what traced numbers stand for. It is taken back when the trace ends, and is the builtin on other threads.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from trueport.capture.builtin_functions import is_instance
from trueport.rewrite.runtime import TRACE
from trueport.source import Where

_NAME = "isinstance"
_NOT_USERS = (torch.__path__[0], sys.base_prefix, "<")


@contextlib.contextmanager
def lent_isinstance(model: torch.nn.Module) -> Iterator[None]:
    lent = []
    for module in _modules(model):
        if _NAME not in vars(module):
            vars(module)[_NAME] = _isinstance
            lent.append(vars(module))
    try:
        yield
    finally:
        for names in lent:
            names.pop(_NAME, None)


def _isinstance(value: Any, kinds: Any) -> bool:
    return is_instance(value, kinds) if TRACE.trace is not None else builtins.isinstance(value, kinds)


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
