"""Watches eager come to a line: what the names of the function hold there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any

import torch

from trueport.examine.limits import within
from trueport.examine.run import run_eager
from trueport.load.job import Job
from trueport.source.scene import Line, NamedValue

_PATIENCE = 20.0


def names_at(job: Job, values: Sequence[object], lines: Collection[Line]) -> dict[Line, dict[str, NamedValue]]:
    """What the names held when eager first came to each of `lines`. What eager raises ends the watch, no more."""
    files = {file for file, _ in lines}
    found: dict[Line, dict[str, NamedValue]] = {}

    def at_line(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        line = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and line in lines and line not in found:
            found[line] = _names(frame)
        return at_line

    def at_call(frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
        return at_line if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    try:
        with within(_PATIENCE):
            sys.settrace(at_call)
            run_eager(job, values)
    except Exception:  # noqa: BLE001  a model may raise anything, and what was seen until then is what was asked for
        pass
    finally:
        sys.settrace(before)
    return found


def _names(frame: FrameType) -> dict[str, NamedValue]:
    found = {name: held for name, value in frame.f_locals.items() if (held := _held(value)) is not None}
    owner = frame.f_locals.get("self")
    if isinstance(owner, torch.nn.Module):
        own = {**vars(owner), **dict(owner.named_parameters()), **dict(owner.named_buffers())}
        found |= {f"self.{name}": held for name, value in own.items() if (held := _held(value)) is not None}
    return found


def _held(value: object) -> NamedValue | None:
    if isinstance(value, torch.Tensor):
        return NamedValue(dtype=str(value.dtype), shape=tuple(value.shape))
    if isinstance(value, int | float):
        return NamedValue(number=value)
    return None
