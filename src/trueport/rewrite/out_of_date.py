"""A file that was edited while Python runs, as in a notebook: its text is no longer what the model computes."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from types import CodeType

import psutil


def is_out_of_date(code: CodeType, text: str) -> bool:
    """Whether a function of a file that was written since Python started is compiled from another text.

    Only then, because tools that change code as it is loaded (pytest, beartype) leave the file as it was.
    """
    try:
        written = os.stat(code.co_filename).st_mtime
    except OSError:
        return False
    return written > _started() and _essence(code) not in _essences(text, code.co_filename)


@functools.cache
def _started() -> float:
    return float(psutil.Process().create_time())


@functools.lru_cache(maxsize=64)
def _essences(text: str, file: str) -> frozenset[tuple[object, ...]]:
    return frozenset(_essence(code) for code in _all_of(compile(text, file, "exec", dont_inherit=True)))


def _all_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_of(constant)


def _essence(code: CodeType) -> tuple[object, ...]:
    """What it computes, without what it is called and where it stands."""
    constants = tuple(_essence(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts)
    return code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, constants
