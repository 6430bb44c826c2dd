"""The user's own lines on a stack of calls.

The user's are all frames but those of torch, of trueport itself and of the standard library: the code of an installed
library such as transformers is what the user has to look at, too.
"""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType, TracebackType

from trueport.source import Where
from trueport.torch_internals import TORCH_FOLDER

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = tuple(sysconfig.get_path(which) + os.sep for which in ("purelib", "platlib"))


def is_users(filename: str) -> bool:
    if filename.startswith((TORCH_FOLDER + os.sep, _OURS, "<frozen")):
        return False
    return filename.startswith(_PACKAGES) or not filename.startswith(_STANDARD)


def user_calls(error: BaseException) -> tuple[Where, ...]:
    """The calls in the user's code that led to an exception, outermost first."""
    return tuple(where_of(f, at) for f, at in frames_of(error) if is_users(f.f_code.co_filename))


def frames_of(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames of an exception, each with the instruction that was running."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def where_of(frame: FrameType, instruction: int) -> Where:
    code = frame.f_code
    line, end_line, start, end = _position(code, instruction)
    if line is None:
        return Where(code.co_filename, code.co_firstlineno, code.co_qualname)
    one_line = start is not None and end is not None and end_line == line
    return Where(
        code.co_filename,
        line,
        code.co_qualname,
        _column(code.co_filename, line, start) if start is not None else None,
        _column(code.co_filename, line, end) if one_line and end is not None else None,
    )


def _position(code: CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    return next(islice(code.co_positions(), instruction // 2, None), (None, None, None, None))


def _column(filename: str, line: int, byte_offset: int) -> int:
    """Python counts columns in UTF-8 bytes from 0; people count characters from 1."""
    text = linecache.getline(filename, line).encode()
    return len(text[:byte_offset].decode(errors="ignore")) + 1 if text else byte_offset + 1
