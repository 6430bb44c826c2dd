"""Which functions of the user's to count decisions in, where no capture has told."""

from __future__ import annotations

import dis
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from trueport.rewrite.finding import everywhere
from trueport.rewrite.functions import Refused
from trueport.rewrite.probes import probed_code
from trueport.source import Where
from trueport.torch_internals import TORCH_FOLDER

_OUR_FOLDER = __file__.rsplit("verify", 1)[0]
_STANDARD = sysconfig.get_paths()["stdlib"]
_PROMPTS = ("<stdin>", "<string>", "<ipython-input", "<python-input")
_OF_DATACLASSES = "__create_fn__."
"""What a dataclass is given, ours too: its file is called as a prompt's is."""
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


def unwatched(codes: Iterable[CodeType]) -> list[CodeType]:
    """Functions of the user's own that go one way or another and have no source to count their ways in."""
    own = [code for code in codes if not Where(code.co_filename, 1).is_installed]
    return [code for code in own if _decides(code) and not _can_be_probed(code)]


def _decides(code: CodeType) -> bool:
    names = {each.opname for each in dis.get_instructions(code)}
    return any(name == "FOR_ITER" or ("JUMP" in name and "_IF_" in name) for name in names)


def _can_be_probed(code: CodeType) -> bool:
    try:
        probed_code(code)
    except Refused:
        return False
    return True


def _is_foreign(code: CodeType) -> bool:
    file = code.co_filename
    if file.startswith((TORCH_FOLDER, _OUR_FOLDER)):
        return True
    if code.co_qualname.startswith(_OF_DATACLASSES):
        return True
    if file.startswith("<"):  # a prompt, where Python may know the lines, or code that a library has made
        return not (file.startswith(_PROMPTS) or linecache.getlines(file))
    return file.startswith(_STANDARD) and not Where(file, 1).is_installed


def _with_callees(codes: list[CodeType]) -> list[CodeType]:
    """Functions of the same files that these name: what only another arm calls has not run yet."""
    functions = everywhere(*{code.co_filename for code in codes})
    found = dict.fromkeys(codes)
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        for function in functions:
            if function.__name__ in code.co_names and function.__code__ not in found:
                found[function.__code__] = None
                waiting.append(function.__code__)
    return list(found)
