"""Looking for inputs that take the ways which drawn inputs did not: `if x.sum() > 1000`, `while` loops of no rounds.

For each way that was never taken, the input that came nearest to it is changed step by step, and a change that brings
it nearer is kept and repeated. Sizes and numbers that the tests mention are tried first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from trueport.load.job import Job
from trueport.rewrite.running.probe_runtime import Site
from trueport.verify.decisions.tally import Goal, Tally
from trueport.verify.decisions.trail import FAR, Near, Trail
from trueport.verify.inputs.moves import Candidate, Move, Mover
from trueport.verify.inputs.sizes import Group

Attempt = Callable[[Sequence[object]], Trail | None]
"""What eager decides on these values, measured; None where it refuses them."""

_STEPS_AT_A_TIME = 60
_STEPS_WITHOUT_GAIN = 500
_STEPS_FOR_MORE = 40
"""After so many steps without coming nearer a way is given up: sooner where it was taken already, and only more inputs
are wanted that take it."""
_KEPT = 4
_FROM_OTHERS = 0.2
"""How often a step sets out from an input that is not the nearest."""


@dataclass
class _Climb:
    """The way to one goal: the inputs that came nearest, and what is still to be tried from the nearest."""

    goal: Goal
    best: list[tuple[Near, Candidate]] = field(default_factory=list)
    pending: Iterator[Move] | None = None
    next: list[Move] = field(default_factory=list)
    """What the last step suggests: more of the same, or as much of it as would lead just there."""
    idle: int = 0

    @property
    def distance(self) -> float | None:
        return self.best[0][0][1] if self.best and self.best[0][0] < FAR else None

    def saw(self, candidate: Candidate, distance: Near) -> bool:
        """Note an input; True where it is nearer than all before."""
        nearer = not self.best or distance < self.best[0][0]
        if nearer or len(self.best) < _KEPT:
            self.best.append((distance, candidate))
            self.best.sort(key=lambda pair: pair[0])
            del self.best[_KEPT:]
        return nearer


class Search:
    """One search. `found` are inputs that take a new way; the caller compares them and adds them to the tally."""

    def __init__(self, job: Job, groups: Sequence[Group], tally: Tally, attempt: Attempt, seed: int) -> None:
        self._job, self._groups, self._tally, self._attempt = job, groups, tally, attempt
        self._dice = random.Random(seed)
        self._climbs: dict[Goal, _Climb] = {}
        self._tried: list[tuple[Candidate, Trail]] = []
        self._asking_tensors: set[Site] = set()
        self.attempts = 0
        self._most = 0

    def found(self, known: Sequence[Candidate], attempts: int) -> Iterator[Candidate]:
        """Inputs that take a way that none has taken, as long as there is one to look for, in so many attempts."""
        self._most = attempts
        for candidate in known:
            # The first run may show that a place asks a tensor after all; the others are of no use without a goal.
            if self._is_over or (self.attempts and not self._tally.goals()):
                return
            trail = self._run(candidate)
            if trail is not None:
                self._tried.append((candidate, trail))
        while not self._is_over:
            climbs = [climb for climb in self._open() if climb.idle < self._patience(climb)]
            if not climbs:
                return
            climb = min(climbs, key=lambda climb: (self._tally.told(climb.goal), climb.idle))
            yield from self._steps(climb)

    @property
    def _is_over(self) -> bool:
        return self.attempts >= self._most

    def _patience(self, climb: _Climb) -> int:
        return _STEPS_FOR_MORE if self._tally.told(climb.goal) else _STEPS_WITHOUT_GAIN

    def _open(self) -> list[_Climb]:
        goals = self._tally.goals()
        for goal in goals:
            if goal not in self._climbs:
                climb = self._climbs[goal] = _Climb(goal)
                for candidate, trail in self._tried:
                    climb.saw(candidate, _distance(goal, candidate, trail))
        return [self._climbs[goal] for goal in goals]

    def _steps(self, climb: _Climb) -> Iterator[Candidate]:
        mover = Mover(self._job, self._groups, climb.goal[0].constants, self._other_constants())
        for _ in range(_STEPS_AT_A_TIME):
            if self._is_over or not climb.best:
                climb.idle += _STEPS_WITHOUT_GAIN * (not climb.best)
                return
            climb.idle += 1
            before, base, move = self._next(climb, mover)
            candidate = mover.apply(move, base)
            trail = self._run(candidate) if candidate is not None else None
            if candidate is None or trail is None:
                continue
            self._note(candidate, trail, climb)
            after = _distance(climb.goal, candidate, trail)
            nearer = climb.saw(candidate, after)
            if nearer:
                climb.idle = 0
                climb.next = [further] if (further := move.further()) is not None else []
                if after[0] < before[0]:  # another operand now, with moves of its own
                    climb.pending = None
            elif move.is_straight and move.leaf is not None and not climb.next and climb.best[0][1] is base:
                climb.next = _crossings(move, before, after)
            if candidate.is_telling and self._is_new(trail):
                self._tried.append((candidate, trail))
                yield candidate
                if climb.goal in trail.ways:
                    return

    def _next(self, climb: _Climb, mover: Mover) -> tuple[Near, Candidate, Move]:
        near, base = climb.best[0]
        if climb.next:
            return near, base, climb.next.pop()
        if climb.pending is None:
            climb.pending = mover.first(base, climb.distance, climb.goal[0] in self._asking_tensors)
        move = next(climb.pending, None)
        if move is not None:
            return near, base, move
        if self._dice.random() < _FROM_OTHERS:
            near, base = self._dice.choice(climb.best)
        return near, base, mover.chance(base, near[1] if near < FAR else None, self._dice)

    def _run(self, candidate: Candidate) -> Trail | None:
        self.attempts += 1
        trail = self._attempt(candidate.values)
        if trail is not None:
            self._tally.observe(trail)
            self._asking_tensors |= trail.by_tensor
        return trail

    def _note(self, candidate: Candidate, trail: Trail, at_work: _Climb) -> None:
        """An input on the way to one goal may be nearer to another."""
        for goal, climb in self._climbs.items():
            near = goal in trail.distances and climb is not at_work
            if near and climb.saw(candidate, _distance(goal, candidate, trail)):
                climb.idle = 0

    def _is_new(self, trail: Trail) -> bool:
        return any(map(self._tally.is_goal, trail.ways))

    def _other_constants(self) -> list[float]:
        """The numbers of all tests, if they are few."""
        others = [number for decision in self._tally.decisions() for number in decision.site.constants]
        return others if len(others) < 24 else []


def _distance(goal: Goal, candidate: Candidate, trail: Trail) -> Near:
    """How near an input comes to a goal. Nothing but zeros may well take the way, and tells nothing there."""
    return trail.distances.get(goal, FAR) if candidate.is_telling else FAR


def _crossings(move: Move, before: Near, after: Near) -> list[Move]:
    """A straight move that overshot, or went the wrong way: how much of it would lead just there."""
    if before[0] != after[0] or before[1] == after[1] or after[1] > 1e12:
        return []
    amounts = (move.amount * before[1] / (before[1] + after[1]), move.amount * before[1] / (before[1] - after[1]))
    return [replace(move, amount=amount) for amount in amounts if abs(amount) < 1e6]
