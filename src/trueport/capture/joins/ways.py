"""One way through the user's code, an arm of a branch or a round of a loop, after it was traced and undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trueport.capture.effects.last_values import LastValues
from trueport.capture.graph import Region
from trueport.capture.recording.sharing import Left
from trueport.capture.recording.writes import Write
from trueport.capture.values.stores import ContainerChange, Contents, as_left, contents_after


@dataclass
class TracedWay:
    region: Region
    shared: Left = field(default_factory=Left)
    was_there: Callable[[Any], bool] = lambda _: False
    """Whether a container is older than the way, so that others may know it."""
    after: tuple[Any, ...] = ()
    """What names hold at its end."""
    changes: tuple[ContainerChange, ...] = ()
    writes: tuple[Write, ...] = ()
    values: LastValues = field(default_factory=dict)
    """What tensors held at its end."""

    @cached_property
    def contents(self) -> Contents:
        """What containers held at its end, where it changed them."""
        return contents_after(self.changes)

    def left(self, value: Any) -> Any:
        """A value as the way left it, although what it put into containers was undone."""
        return as_left(value, self.contents)


@dataclass
class Arm(TracedWay):
    """One arm of a branch, before it is joined with the other."""

    returned: Any = None
    raised: Exception | None = None
