"""One arm of a branch after it was traced, before it is joined with the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trueport.capture.effects.last_values import LastValues
from trueport.capture.graph import Region
from trueport.capture.recording.sharing import Left
from trueport.capture.recording.writes import Write
from trueport.capture.values.stores import ContainerChange


@dataclass
class Arm:
    """One arm of a branch after it was traced."""

    region: Region
    returned: Any = None
    after: tuple[Any, ...] = ()
    changes: tuple[ContainerChange, ...] = ()
    writes: tuple[Write, ...] = ()
    raised: Exception | None = None
    shared: Left = field(default_factory=Left)
    values: LastValues = field(default_factory=dict)
    was_there: Callable[[Any], bool] = lambda _: False
    """Whether a container is older than the arm."""
