"""What one run of eager decided: which way each test of the user's code went, and how often each loop ran."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from trueport.rewrite.probe_runtime import WATCH, Kind, Site
from trueport.verify.distance import Distance, both, either, negated, of_comparison, of_truth
from trueport.verify.provenance import Provenance

Way: TypeAlias = int
"""For a test 0 (it holds) or 1; for a loop 0, 1 or 2 rounds, where 2 stands for all that are more; else the choice."""
HOLDS, FAILS = 0, 1
_FAR = 1e30


class Overstayed(BaseException):
    """Eager does not come back from a loop. No `except Exception` of the user's stops it."""


@dataclass
class Trail:
    """What was decided in one run."""

    ways: dict[tuple[Site, Way], int] = field(default_factory=dict)
    """How often each way was taken."""
    trips: dict[Site, list[int]] = field(default_factory=dict)
    """The number of rounds of each time that a loop was entered."""
    distances: dict[tuple[Site, Way], float] = field(default_factory=dict)
    """How far each way was at its nearest; 0 for a way that was taken."""
    looked_at: dict[Site, list[object]] = field(default_factory=dict)
    """The plain numbers that a test compared: where they move with the input, the test decides by it."""
    by_tensor: set[Site] = field(default_factory=set)
    """Places that asked a tensor."""

    def takes(self, site: Site, way: Way) -> bool:
        return (site, way) in self.ways

    def note(self, site: Site, way: Way) -> None:
        self.ways[site, way] = self.ways.get((site, way), 0) + 1
        self.distances[site, way] = 0.0

    def near(self, site: Site, way: Way, distance: float) -> None:
        known = self.distances.get((site, way), _FAR)
        self.distances[site, way] = min(known, distance)


@contextlib.contextmanager
def followed(seconds: float | None = None, guide: bool = False) -> Iterator[Trail]:
    """What probed code decides meanwhile on this thread. Raises Overstayed in a loop that is not done in `seconds`.

    With `guide`, tests are measured by what their tensors were made of; torch's own paths may be others then.
    """
    follower = _Follower(None if seconds is None else time.monotonic() + seconds, Provenance() if guide else None)
    before, WATCH.watcher = WATCH.watcher, follower
    try:
        with follower.provenance or contextlib.nullcontext():
            yield follower.trail
    finally:
        WATCH.watcher = before
        follower.finish()


class _Follower:
    """Is told by the probes, and writes the trail."""

    def __init__(self, deadline: float | None, provenance: Provenance | None) -> None:
        self.trail = Trail()
        self.provenance = provenance
        self._deadline = deadline
        self._stack: list[Distance | None] = []
        self._questions: dict[int, int] = {}
        self._compared: tuple[Any, Any] | None = None

    # --- measuring a test

    def mark(self) -> int:
        if self.provenance is not None:
            self._questions[len(self._stack)] = self.provenance.questions
        return len(self._stack)

    def leaf(self, mark: int, value: Any) -> None:
        del self._stack[mark:]
        if self.provenance is None:
            self._stack.append(of_truth(value))
        elif isinstance(value, bool) and self.provenance.asked is not None:
            # A plain truth: most likely the last that a tensor was asked for, possibly turned round.
            asked = self.provenance.asked
            holds = float(asked.to_true.max()) == 0.0 if asked.to_true.numel() else value
            self._stack.append(asked if holds == value else negated(asked))
        else:
            self._stack.append(self.provenance.measured(value))

    def compared(self, mark: int, word: str, left: Any, right: Any) -> None:
        del self._stack[mark:]
        self._compared = (left, right)
        measure = of_comparison if self.provenance is None else self.provenance.compared
        self._stack.append(measure(word, left, right))

    def joined(self, mark: int, word: str) -> None:
        parts = self._stack[mark:]
        del self._stack[mark:]
        known = [part for part in parts if part is not None]
        if word == "":  # nobody decides by it at once
            return
        if not known:
            self._stack.append(None)
        elif word == "not":
            self._stack.append(negated(known[0]))
        else:
            self._stack.append(both(known) if word == "and" else either(known))

    # --- decisions

    def decided(self, site: Site, mark: int, value: Any) -> None:
        self._in_time()
        measured = self._stack[mark] if len(self._stack) > mark else None
        if site.kind not in (Kind.AND, Kind.OR):  # an operand is measured further by what it belongs to
            del self._stack[mark:]
        self._look(site, mark, value)
        try:
            holds = bool(value)
        except Exception:  # noqa: BLE001 what has no truth is refused by the user's own `if`, a moment later
            return
        if site.kind is not Kind.WHILE:
            self.trail.note(site, HOLDS if holds else FAILS)
        elif holds:
            self.trail.trips.setdefault(site, [0])[-1] += 1
        if measured is not None:
            to_true, to_false = measured.plain()
            other, distance = (FAILS, to_false) if holds else (HOLDS, to_true)
            if site.kind is Kind.WHILE:
                self._near_rounds(site, holds, distance)
            else:
                self.trail.near(site, other, distance)

    def _near_rounds(self, site: Site, holds: bool, distance: float) -> None:
        """A test that nearly fails before the first round is near to no rounds; one that nearly holds, to one more."""
        share = distance / (distance + 1.0)
        rounds = self.trail.trips.get(site, [0])[-1]
        done = rounds - 1 if holds else rounds
        if holds:
            self.trail.near(site, min(done, 2), share)
        else:
            for wanted in range(done + 1, 3):
                self.trail.near(site, wanted, wanted - done - 1 + share)

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
            self._in_time()
            yield item

    def finish(self) -> None:
        """What is known only at the end: how often each loop ran."""
        for site, trips in self.trail.trips.items():
            for rounds in trips:
                self.trail.note(site, min(rounds, 2))
                if site.kind is Kind.FOR:
                    for wanted in range(3):
                        self.trail.near(site, wanted, abs(rounds - wanted) if wanted < 2 else max(0, 2 - rounds))

    def _look(self, site: Site, mark: int, value: Any) -> None:
        asked_tensor = self.provenance is not None and self.provenance.questions > self._questions.get(mark, 0)
        seen, self._compared = self._compared, None
        if isinstance(value, torch.Tensor) or asked_tensor:
            self.trail.by_tensor.add(site)
        elif seen is not None and all(isinstance(side, bool | int | float) for side in seen):
            self.trail.looked_at.setdefault(site, []).append(seen)

    def _in_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise Overstayed
