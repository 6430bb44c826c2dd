"""How far the work has come, for whoever listens. Nobody does in Python, unless they say so: `with heard_by(...)`.

progress.stage("write")              # what is being done from now on
progress.count(0, total, "bytes")    # how much of it; total is None where nobody knows
progress.advance(tensor.nbytes)      # so much more
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

_GB, _MB = 1e9, 1e6


@dataclass
class Reached:
    """Where the work stands. Listeners look at it when they like: it is written by one thread and read by others."""

    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""

    def __str__(self) -> str:
        """`write, 1.2 of 3.4 GB`, or `verify, 12 inputs`."""
        if not self.unit:
            return self.stage
        if self.unit == "bytes":
            scale, unit = (_GB, "GB") if max(self.done, self.total or 0) >= _GB else (_MB, "MB")
            of = "" if self.total is None else f" of {self.total / scale:.1f}"
            return f"{self.stage}, {self.done / scale:.1f}{of} {unit}"
        of = "" if self.total is None else f" of {self.total}"
        return f"{self.stage}, {self.done}{of} {self.unit}"


_heard: ContextVar[Reached | None] = ContextVar("trueport.progress", default=None)


@contextlib.contextmanager
def heard_by(listener: Reached) -> Iterator[None]:
    """What is told in this context, meanwhile, is written into `listener`."""
    token = _heard.set(listener)
    try:
        yield
    finally:
        _heard.reset(token)


def stage(name: str) -> None:
    if (reached := _heard.get()) is not None:
        reached.stage, reached.done, reached.total, reached.unit = name, 0, None, ""


def count(done: int, total: int | None, unit: str) -> None:
    if (reached := _heard.get()) is not None:
        reached.done, reached.total, reached.unit = done, total, unit


def advance(step: int = 1) -> None:
    if (reached := _heard.get()) is not None:
        reached.done += step
