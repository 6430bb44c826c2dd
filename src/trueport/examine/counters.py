"""Attributes that change at every call and that forward looks at: a count of the calls, a switch, a growing list.

Calling eager a few times shows whether the next results depend on them, but not what `if self.calls > 50:` does at the
fifty-first. So a number that is another one after each call, even of the same input, is not believed to be harmless
where a function that forward ran reads it for anything else than to change it. What settles down after the first call
is a cache; that is for eager to judge (`remembering.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

from trueport.examine.run import call_eagerly
from trueport.examine.state import Snapshot
from trueport.load.job import Job
from trueport.load.stack import is_users
from trueport.source import Where
from trueport.source.writes import line_that_reads


def counters_read(job: Job, state: Snapshot, example: Sequence[object], written: Sequence[str]) -> dict[str, Where]:
    """The names of such attributes among those that a call writes, and where each is read."""
    ran: set[CodeType] = set()
    try:
        before = state.countable()
        _noting(ran, lambda: call_eagerly(job, example))
        once = state.countable()
        call_eagerly(job, example)
        twice = state.countable()
    except Exception:  # noqa: BLE001  a model that refuses its second call is judged elsewhere
        return {}
    finally:
        state.put_back()
    never_rests = [n for n in written if n in before and before[n] != once.get(n) and once.get(n) != twice.get(n)]
    found: dict[str, Where] = {}
    for name in never_rests:
        attribute = re.findall(r"[^\W\d]\w*", re.sub(r"\[[^]]*\]", "", name))[-1]
        for code in sorted(ran, key=lambda code: (code.co_filename, code.co_firstlineno)):
            line = line_that_reads(code.co_filename, code.co_firstlineno, attribute)
            if line is not None:
                found[name] = Where(code.co_filename, line, code.co_qualname)
                break
    return found


def _noting(ran: set[CodeType], call: Callable[[], Any]) -> None:
    """Call it, and note the user's own functions that run meanwhile."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and is_users(frame.f_code.co_filename):
            ran.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
