"""Which functions of the user's to count decisions in, where no capture has told."""

from __future__ import annotations

import gc
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from trueport.source import Where
from trueport.torch_internals import TORCH_FOLDER

_OUR_FOLDER = __file__.rsplit("verify", 1)[0]
_STANDARD = sysconfig.get_paths()["stdlib"]
_MOST_OF_LIBRARIES = 100
"""So many functions of installed libraries at most: compiling each again takes some milliseconds."""


def functions_run_by(run: Callable[[], Any]) -> tuple[CodeType, ...]:
    """What `run` executes of Python outside torch and the standard library, and what that may call in its files."""
    seen: dict[CodeType, None] = {}

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(before)
    theirs = [code for code in seen if not _is_foreign(code)]
    own = [code for code in theirs if not Where(code.co_filename, 1).is_installed]
    libraries = [code for code in theirs if Where(code.co_filename, 1).is_installed]
    return (*_with_callees(own), *libraries[:_MOST_OF_LIBRARIES])


def _is_foreign(code: CodeType) -> bool:
    file = code.co_filename
    if file.startswith((TORCH_FOLDER, _OUR_FOLDER, "<")):
        return True
    return file.startswith(_STANDARD) and not Where(file, 1).is_installed


def _with_callees(codes: list[CodeType]) -> list[CodeType]:
    """Functions of the same files that these name: what only another arm calls has not run yet."""
    files = {code.co_filename for code in codes}
    functions = [o for o in gc.get_objects() if type(o) is FunctionType and o.__code__.co_filename in files]
    found = dict.fromkeys(codes)
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        for function in functions:
            if function.__name__ in code.co_names and function.__code__ not in found:
                found[function.__code__] = None
                waiting.append(function.__code__)
    return list(found)
