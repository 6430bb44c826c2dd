"""What the names around a line held when eager came to it: plain facts, which need no torch to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Line = tuple[str, int]
"""A file and a line of it."""


@dataclass(frozen=True, slots=True)
class NamedValue:
    """What a name (`x`, or `self.heads`) was: a tensor with its dtype and shape, or a plain number."""

    dtype: str = ""
    shape: tuple[int, ...] | None = None
    number: int | float | None = None

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None


@dataclass(frozen=True, slots=True)
class Seen:
    """One run of eager: the free sizes of its input, and what the names held at each line that was watched."""

    sizes: Mapping[str, int]
    names: Mapping[Line, Mapping[str, NamedValue]]


@dataclass(frozen=True, slots=True)
class Scene:
    """Several runs, at different sizes where the model has free ones. The first is the example's."""

    runs: tuple[Seen, ...] = field(default=())

    def at(self, line: Line) -> dict[str, tuple[NamedValue, ...]]:
        """What each name held at a line, once per run that came there; only names that all of them knew."""
        visits = [seen.names[line] for seen in self.runs if line in seen.names]
        if not visits:
            return {}
        return {name: tuple(visit[name] for visit in visits) for name in visits[0] if all(name in v for v in visits)}

    def sizes_at(self, line: Line) -> tuple[Mapping[str, int], ...]:
        """The free sizes of the runs that came to a line, in the order of `at`."""
        return tuple(seen.sizes for seen in self.runs if line in seen.names)
