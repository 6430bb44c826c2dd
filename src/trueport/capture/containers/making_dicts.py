"""`defaultdict` and `Counter` in rewritten code: dicts that answer for keys which they do not have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from trueport.capture.containers.dicts import TracedDict
from trueport.capture.containers.tables import Counting


class MakingDict(TracedDict, Counting):
    """One that makes what it is asked for."""

    def __init__(self, missing: Callable[[], Any], stands_for: type) -> None:
        super().__init__()
        self.missing, self.stands_for = missing, stands_for

    def empty(self) -> MakingDict:
        return MakingDict(self.missing, self.stands_for)

    def __getitem__(self, key: Any) -> Any:
        there = self.presence(key)
        if there is True:
            return dict.__getitem__(self, key)
        value = self.missing() if there is False else self.get(key, self.missing())
        if self.stands_for is defaultdict:
            self[key] = value
        return value

    def update(self, *args: Any, **kwargs: Any) -> None:
        """A Counter adds what it is given, or counts it."""
        if self.stands_for is not Counter:
            super().update(*args, **kwargs)
            return
        for other in (*args, kwargs):
            self.add_up(other)
