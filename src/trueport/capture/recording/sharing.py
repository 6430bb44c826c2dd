"""Names that may be one and the same tensor, depending on the way that the model took.

    if c: h = g             a write to `h` reaches `g` where c holds, and only there
    else: h = g * 2

A graph of values has no such tensors. So the result of a branch or a loop is a memory of its own, linked to those that
it may be; after a write to one of them, the others hold something else than in eager. Whoever reads them then asks for
the rest of the block to be traced in each arm, where it is clear which tensor is which, or is refused. Nobody is who
only writes, or who reads what was written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trueport.diagnostics.rules.tp103_arms_disagree import ArmsDisagree
from trueport.errors import refusal
from trueport.source import Place

Memory = int
"""What `memory_of` gives: the same for a tensor and all its views."""

Again = Callable[[], None]
"""Asks for another trace; returns where that was tried before."""


@dataclass(frozen=True)
class Link:
    one: Memory
    other: Memory
    again: Again | None


@dataclass
class Left:
    """What a region left behind: memories that were linked, and those that a write made stale."""

    links: list[Link] = field(default_factory=list)
    stale: dict[Memory, Place] = field(default_factory=dict)


class Sharing:
    """Which memories of one trace may be the same, and which are out of date."""

    def __init__(self) -> None:
        self._now = Left()
        self._written: list[Memory] = []

    def link(self, one: Memory, others: Iterable[Memory], again: Again | None = None, as_stale: bool = True) -> None:
        """`one` may be any of the others, and is as stale as they are, unless the caller knows better."""
        for other in others:
            if other != one:
                self._now.links.append(Link(one, other, again))
                if as_stale and other in self._now.stale:
                    self._now.stale.setdefault(one, self._now.stale[other])

    def write(self, memory: Memory, place: Place) -> None:
        self._written.append(memory)
        if self._now.links:
            for other in self.same_as([memory]) - {memory}:
                self._now.stale.setdefault(other, place)

    def read(self, memory: Memory, place: Place) -> None:
        """Raises where the memory does not hold what eager would read there."""
        if memory in self._now.stale:
            written = self._now.stale[memory]
            same = self.same_as([memory])
            for link in self._now.links:
                if link.one in same and link.again is not None:
                    link.again()
            raise refusal(
                ArmsDisagree(
                    message="a tensor is read here that may be one that another line writes in place, depending on "
                    "the way that the model took before",
                    place=place,
                    label="read here",
                    seen=(f"written in place at {written}",),
                    fix="where one name is given to another in a branch or a loop, give it a copy: .clone()",
                )
            )

    @property
    def stale(self) -> Mapping[Memory, Place]:
        """The memories that are out of date, and where the tensor that each may be was written."""
        return self._now.stale

    def same_as(self, memories: Iterable[Memory]) -> set[Memory]:
        """These, and all that may be the same: what they may be, and whatever may be that.

        `larger = a if a.sum() > b.sum() else b` may be either; but a is not b, however often they meet like this.
        """
        others: dict[Memory, list[Memory]] = {}
        backwards: dict[Memory, list[Memory]] = {}
        for link in self._now.links:
            others.setdefault(link.one, []).append(link.other)
            backwards.setdefault(link.other, []).append(link.one)
        return _reached(_reached(memories, others), backwards)

    # --- regions

    @property
    def writes(self) -> int:
        """A point in the trace, for `written_since`."""
        return len(self._written)

    def written_since(self, point: int) -> set[Memory]:
        return set(self._written[point:])

    @contextlib.contextmanager
    def arm(self) -> Iterator[Left]:
        """What happens in one arm of a branch has not happened in the other; `join` brings both together."""
        before = self._now
        self._now = Left(list(before.links), dict(before.stale))
        try:
            yield self._now
        finally:
            self._now = before

    def keep_links(self, arm: Left) -> None:
        """What was linked in an attempt at tracing a round stays linked; what it wrote has not happened."""
        self._now.links += arm.links[len(self._now.links) :]

    def join(self, *arms: Left) -> None:
        known = len(self._now.links)
        for arm in arms:
            self._now.links += arm.links[known:]
            self._now.stale = {**arm.stale, **self._now.stale}

    def spoil(self, memory: Memory, place: Place) -> None:
        """Nobody may read this."""
        self._now.stale.setdefault(memory, place)


def _reached(memories: Iterable[Memory], links: Mapping[Memory, list[Memory]]) -> set[Memory]:
    found: set[Memory] = set()
    waiting = list(memories)
    while waiting:
        memory = waiting.pop()
        if memory not in found:
            found.add(memory)
            waiting += links.get(memory, ())
    return found
