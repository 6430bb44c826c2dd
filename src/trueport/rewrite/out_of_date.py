"""A file that was edited while Python runs, as in a notebook: its text is no longer what the model computes."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS

_ROUGHLY = 2.0
"""Seconds: the system knows only so well when a process began. A file may be saved just before it does."""


def is_out_of_date(code: CodeType, text: str) -> bool:
    """Whether a function of a file that was written since Python started is compiled from another text.

    Only then, because tools that change code as it is loaded (pytest, beartype) leave the file as it was.
    """
    try:
        written = os.stat(code.co_filename).st_mtime
    except OSError:
        return False
    return written > _started() + _ROUGHLY and not any(
        _is_same(code, each) for each in _compiled(text, code.co_filename)
    )


_LOADED = time.time()
_START_TIME = 19
"""Where /proc/self/stat has the ticks from the start of the machine to that of the process, behind its name."""


@functools.cache
def _started() -> float:
    """When this process began. Where no /proc tells it, when this module was loaded: later, so less is compared."""
    try:
        told = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        since_boot = int(told[_START_TIME]) / os.sysconf("SC_CLK_TCK")
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
    except (OSError, AttributeError):
        return _LOADED


@functools.lru_cache(maxsize=64)
def _compiled(text: str, file: str) -> tuple[CodeType, ...]:
    return tuple(_all_of(compile(text, file, "exec", dont_inherit=True)))


def _all_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_of(constant)


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Whether both compute the same. A function inside that is rewritten already was compared when it was."""
    mine, theirs = (
        (each.co_name, each.co_firstlineno, each.co_code, each.co_names, each.co_varnames, len(each.co_consts))
        for each in (code, other)
    )
    return mine == theirs and all(map(_is_same_constant, code.co_consts, other.co_consts))


def _is_same_constant(one: object, other: object) -> bool:
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    rewritten = any(constant is RUNTIME_FUNCTIONS for each in _all_of(one) for constant in each.co_consts)
    return rewritten or _is_same(one, other)
