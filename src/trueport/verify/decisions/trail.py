"""What one run of eager decided: which way each test of the user's code went, and how often each loop ran."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from trueport.errors import Unwinding
from trueport.rewrite.running.probe_runtime import WATCH, DecisionKind, Site
from trueport.torch_internals import UnseenByModes
from trueport.verify.decisions.distance import Distance, negated, of_comparison, of_numbers
from trueport.verify.decisions.provenance import Provenance

Way: TypeAlias = int
"""For a test 0 (it holds) or 1; for a loop 0, 1 or 2 rounds, where 2 stands for all that are more; else the choice."""
HOLDS, FAILS = 0, 1
Near: TypeAlias = tuple[int, float]
"""How many operands of the test were not even looked at, then how far the last that was is from going the other way.

The first operand of `a and b` that comes to hold brings the whole nearer, however far `b` turns out to be.
"""
FAR: Near = (1 << 30, 1e30)
_Measured: TypeAlias = tuple[Near, Near]
"""Of one test: how near it is to holding, and to failing."""


class Overstayed(Unwinding):
    """Eager does not come back from a loop. No `except Exception` of the user's stops it."""


@dataclass
class Trail:
    """What was decided in one run."""

    ways: dict[tuple[Site, Way], int] = field(default_factory=dict)
    """How often each way was taken."""
    trips: dict[Site, list[int]] = field(default_factory=dict)
    """The number of rounds of each time that a loop was entered."""
    distances: dict[tuple[Site, Way], Near] = field(default_factory=dict)
    """How far each way was at its nearest; nothing for a way that was taken. Measured where that guides a search."""
    looked_at: dict[Site, list[object]] = field(default_factory=dict)
    """The plain numbers that a test compared: where they move with the input, the test decides by it."""
    by_tensor: set[Site] = field(default_factory=set)
    """Places that asked a tensor."""
    decisions: int = 0
    """How many there were, rounds of loops included."""

    def takes(self, site: Site, way: Way) -> bool:
        return (site, way) in self.ways

    def note(self, site: Site, way: Way) -> None:
        self.ways[site, way] = self.ways.get((site, way), 0) + 1
        self.distances[site, way] = (0, 0.0)

    def near(self, site: Site, way: Way, distance: Near) -> None:
        known = self.distances.get((site, way), FAR)
        self.distances[site, way] = min(known, distance)


@contextlib.contextmanager
def followed(decisions: int | None = None, guide: bool = False) -> Iterator[Trail]:
    """What probed code decides meanwhile on this thread. Raises Overstayed in a loop once so many `decisions` were
    made: a loop need not end on an input of our making, and a count is the same on every machine.

    With `guide`, tests are measured by what their tensors were made of; torch's own paths may be others then.
    """
    follower = _Follower(decisions, Provenance() if guide else None)
    before, WATCH.watcher = WATCH.watcher, follower
    try:
        with follower.provenance or contextlib.nullcontext():
            yield follower.trail
    finally:
        WATCH.watcher = before
        follower.finish()


class _Follower:
    """Is told by the probes, and writes the trail."""

    def __init__(self, most: int | None, provenance: Provenance | None) -> None:
        self.trail = Trail()
        self.provenance = provenance
        self._most = most
        self._stack: list[_Measured | None] = []
        self._questions: dict[int, int] = {}
        self._compared: tuple[Any, Any] | None = None

    # --- measuring a test

    @property
    def guides(self) -> bool:
        return self.provenance is not None

    def mark(self) -> int:
        if self.provenance is not None:
            self._questions[len(self._stack)] = self.provenance.questions
        return len(self._stack)

    def leaf(self, mark: int, value: Any) -> None:
        if self.provenance is not None:
            with UnseenByModes():
                del self._stack[mark:]
                self._push(self._truth(value, self.provenance))

    def _truth(self, value: Any, provenance: Provenance) -> Distance | None:
        asked = provenance.asked() if isinstance(value, bool) else None
        if asked is None or asked.to_true.numel() != 1:
            return provenance.measured(value)
        # A plain truth: most likely the last that a tensor was asked for, possibly turned round.
        return asked if (asked.plain()[0] == 0.0) == value else negated(asked)

    def compared(self, mark: int, word: str, left: Any, right: Any) -> None:
        self._compared = (left, right)
        if self.guides:
            with UnseenByModes():
                del self._stack[mark:]
                if (pair := of_numbers(word, left, right)) is not None:
                    self._stack.append(((0, pair[0]), (0, pair[1])))
                else:
                    self._push(of_comparison(word, left, right))

    def joined(self, mark: int, word: str, count: int) -> None:
        parts = self._stack[mark:]
        del self._stack[mark:]
        if word == "":  # nobody decides by it at once
            return
        last = parts[-1] if parts else None
        if last is None:
            self._stack.append(None)
        elif word == "not":
            self._stack.append((last[1], last[0]))
        else:
            self._stack.append(_joined(word, last, [part for part in parts if part is not None], count - len(parts)))

    def _push(self, distance: Distance | None) -> None:
        if distance is None:
            self._stack.append(None)
        else:
            to_true, to_false = distance.plain()
            self._stack.append(((0, to_true), (0, to_false)))

    # --- decisions

    def decided(self, site: Site, mark: int, value: Any) -> None:
        self._count()
        measured = self._stack[mark] if len(self._stack) > mark else None
        if site.kind not in (DecisionKind.AND, DecisionKind.OR):  # an operand is measured further by what it belongs to
            del self._stack[mark:]
        self._look(site, mark, value)
        try:
            with UnseenByModes():  # a question of ours
                holds = bool(value)
        except Exception:  # noqa: BLE001 what has no truth is refused by the user's own `if`, a moment later
            return
        if not site.kind.asks:
            self.trail.note(site, HOLDS if holds else FAILS)
        elif holds:
            self.trail.trips.setdefault(site, [0])[-1] += 1
        if measured is not None:
            other, distance = (FAILS, measured[1]) if holds else (HOLDS, measured[0])
            if site.kind.asks:
                self._near_rounds(site, holds, distance)
            else:
                self.trail.near(site, other, distance)

    def _near_rounds(self, site: Site, holds: bool, distance: Near) -> None:
        """A test that nearly fails before the first round is near to no rounds; one that nearly holds, to one more."""
        unseen, far = distance
        rounds = self.trail.trips.get(site, [0])[-1]
        done = rounds - 1 if holds else rounds
        if holds:
            self.trail.near(site, min(done, 2), (unseen, far))
        else:
            for wanted in range(done + 1, 3):
                self.trail.near(site, wanted, (unseen + wanted - done - 1, far))

    def took(self, site: Site, way: int) -> None:
        self.trail.note(site, way)

    def began(self, site: Site) -> None:
        self.trail.trips.setdefault(site, []).append(0)

    def rounds(self, site: Site, over: Iterable[Any]) -> Iterable[Any]:
        if isinstance(over, torch.Tensor):
            self.trail.by_tensor.add(site)
        trips = self.trail.trips.setdefault(site, [])
        at = len(trips)
        trips.append(0)
        for item in over:
            trips[at] += 1
            self._count()
            yield item

    def finish(self) -> None:
        """What is known only at the end: how often each loop ran."""
        for site, trips in self.trail.trips.items():
            for rounds in trips:
                self.trail.note(site, min(rounds, 2))
                if not site.kind.asks:
                    self.trail.near(site, 0, (0, rounds))
                    self.trail.near(site, 1, (0, abs(rounds - 1)))
                    self.trail.near(site, 2, (0, max(0, 2 - rounds)))

    def _look(self, site: Site, mark: int, value: Any) -> None:
        asked_tensor = self.provenance is not None and self.provenance.questions > self._questions.get(mark, 0)
        seen, self._compared = self._compared, None
        if isinstance(value, torch.Tensor) or asked_tensor:
            self.trail.by_tensor.add(site)
        elif seen is not None and all(isinstance(side, bool | int | float) for side in seen):
            self.trail.looked_at.setdefault(site, []).append(seen)

    def _count(self) -> None:
        self.trail.decisions += 1
        if self._most is not None and self.trail.decisions > self._most:
            raise Overstayed


def _joined(word: str, last: _Measured, parts: list[_Measured], unseen: int) -> _Measured:
    """`and`: to hold, the operand at which it stopped must hold, and then those that were not looked at; to fail, any
    that was. `or` is the same the other way round."""
    wanted, other = (0, 1) if word == "and" else (1, 0)
    forward = (last[wanted][0] + unseen, last[wanted][1])
    back = min(part[other] for part in parts)
    return (forward, back) if word == "and" else (back, forward)
