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
from trueport.capture.values.chosen import may_be_chosen
from trueport.capture.values.stores import ContainerChange, Contents, as_left, contents_after
from trueport.load.containers import Attributes
from trueport.load.values import attributes_of


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
    _copies: dict[int, Any] = field(default_factory=dict)
    """Of objects, as the arm left them."""

    def left(self, value: Any) -> Any:
        """Objects too: if the other arm leaves another object under the name, one is made of the attributes of both."""
        found = super().left(value)
        if not self.contents or may_be_chosen(found) or attributes_of(found) is None:
            return found
        held = self.contents.get(id(getattr(found, "__dict__", found)))
        if held is None:
            return found
        if id(found) not in self._copies:
            kind = Attributes(type(found), tuple(held))
            made = self._copies[id(found)] = kind.shell()
            kind.fill(made, [self.left(part) for part in held.values()])
        return self._copies[id(found)]
