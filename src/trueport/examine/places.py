"""The user's own line, from an exception or from the running stack.

The user's are all frames but those of torch, of trueport itself and of the standard library: the code of an installed
library such as transformers is what the user has to look at, too.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType, TracebackType

import torch

from trueport.source import Place, Where
from trueport.torch_internals import TORCH_FOLDER

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = tuple(sysconfig.get_path(which) + os.sep for which in ("purelib", "platlib"))


def is_users(filename: str) -> bool:
    if filename.startswith((TORCH_FOLDER + os.sep, _OURS, "<frozen")):
        return False
    return filename.startswith(_PACKAGES) or not filename.startswith(_STANDARD)


def user_place(error: BaseException, model: torch.nn.Module | None = None) -> Place:
    """Where an exception came from: the calls in the user's code, and the module of `model` that was running."""
    steps = list(_steps(error.__traceback__))
    calls = tuple(_where(frame, instruction) for frame, instruction in steps if is_users(frame.f_code.co_filename))
    running = running_module(error, model) if model is not None else None
    return Place(calls, running[0] if running else "")


def running_module(
    error: BaseException, model: torch.nn.Module
) -> tuple[str, torch.nn.Module, tuple[torch.Tensor, ...]] | None:
    """The innermost module whose `forward` was running: its path, itself, and the tensors that it was given."""
    paths = {id(module): path for path, module in model.named_modules()}
    found = None
    for frame, _ in _steps(error.__traceback__):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and id(owner) in paths and frame.f_code.co_name == "forward":
            given = [frame.f_locals.get(name) for name in frame.f_code.co_varnames[1 : frame.f_code.co_argcount]]
            found = paths[id(owner)], owner, tuple(value for value in given if isinstance(value, torch.Tensor))
    return found


def user_place_here() -> Place:
    """The user's calls on the running stack, outermost first, down from the model's own forward."""
    calls: list[Where] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "call_eagerly":
        if is_users(frame.f_code.co_filename):
            calls.append(_where(frame, frame.f_lasti))
        frame = frame.f_back
    return Place(tuple(reversed(calls)))


def _steps(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def _where(frame: FrameType, instruction: int) -> Where:
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
