"""Finds the fixes by looking into `fixes/`: to add one is to add a file there."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from trueport.fix import fixes
from trueport.fix.base import Fix


@cache
def all_fixes() -> tuple[Fix, ...]:
    """Every fix, in order of the file names."""
    found: list[Fix] = []
    for module_info in pkgutil.iter_modules(fixes.__path__, f"{fixes.__name__}."):
        module = importlib.import_module(module_info.name)
        found += [
            kind()
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, Fix) and kind.__module__ == module.__name__
        ]
    return tuple(found)


def fixes_for(code: str) -> tuple[Fix, ...]:
    return tuple(fix for fix in all_fixes() if code in fix.codes)
