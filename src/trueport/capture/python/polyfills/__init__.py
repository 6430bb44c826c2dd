"""Polyfills: functions of Python's library, written in plain Python and put through our own rewriter.

The library's own are written in C, or ask for plain numbers, and know nothing of traced values. In a trace, rewritten
code calls these instead, and their branches and loops become regions as those of the user's do. One file for each
module of the library; a new file is found by itself.

A polyfill is rewritten when it is first called, and so is what it calls, if that is `@rewritten` as well. A call of
the library's function in a polyfill is a call of its polyfill again.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)  # they register themselves
