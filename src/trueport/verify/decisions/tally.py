"""Which ways were taken, over all inputs that were compared; and which were not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trueport.rewrite.running.probe_runtime import DecisionKind, Site
from trueport.verify.decisions.trail import Trail, Way

Goal = tuple[Site, Way]
_LOOP_WAYS = 3
_FEW = 2
_ENOUGH = 3
"""How many telling inputs should take each way."""


def ways_of(site: Site) -> int:
    return _LOOP_WAYS if site.kind.is_loop else site.ways


def way_words(site: Site, way: Way) -> str:
    """A way in the user's words."""
    if site.kind.is_loop:
        return ("no round", "one round", "more rounds")[way]
    if site.kind is DecisionKind.MATCH:
        return f"case {way + 1}"
    if site.kind is DecisionKind.PICK:
        return f"picks argument {way + 1}"
    return ("holds", "fails")[way]


@dataclass(frozen=True, slots=True)
class Decision:
    """One place of the user's code, and on how many of the compared inputs each of its ways was taken."""

    site: Site
    counts: tuple[int, ...]

    @property
    def unreached(self) -> tuple[Way, ...]:
        return tuple(way for way, count in enumerate(self.counts) if count == 0 and way not in self.site.raising)

    @property
    def never_ran(self) -> tuple[Way, ...]:
        """Ways whose code no input has run. Of a loop, only that its body never did: some cannot run once or never."""
        if not self.site.kind.is_loop:
            return self.unreached
        return (2,) if not (self.counts[1] or self.counts[2]) else ()

    @property
    def hardly_ran(self) -> tuple[Way, ...]:
        """Ways whose code ran on one or two inputs only."""
        if not self.site.kind.is_loop:
            return tuple(way for way, count in enumerate(self.counts) if 0 < count <= _FEW)
        return (2,) if 0 < self.counts[1] + self.counts[2] <= _FEW else ()

    def __str__(self) -> str:
        taken = ", ".join(f"{way_words(self.site, way)}: {count}" for way, count in enumerate(self.counts))
        return f"{self.site} `{self.site.text}` {taken}"


Relevant = Callable[[Site], bool]


@dataclass
class Tally:
    """Counts over many trails.

    `kept_alive` says whether the exported graph holds a decision of that line; None where there is no graph to ask.
    """

    kept_alive: Relevant | None = None
    _counts: dict[Site, list[int]] = field(default_factory=dict)
    _first_look: dict[Site, object] = field(default_factory=dict)
    _moved: set[Site] = field(default_factory=set)
    _told: dict[Goal, int] = field(default_factory=dict)
    trails: list[Trail] = field(default_factory=list)
    """Of the telling inputs that were compared and agree."""

    def observe(self, trail: Trail) -> None:
        """A run that was not compared also shows what a place looks at."""
        self._moved |= trail.by_tensor
        for site, _ in trail.ways:
            self._counts.setdefault(site, [0] * ways_of(site))
        looks: dict[Site, object] = {site: tuple(map(str, seen)) for site, seen in trail.looked_at.items()}
        looks |= {site: tuple(trips) for site, trips in trail.trips.items() if not site.kind.asks}
        looks |= {
            site: way
            for (site, way) in trail.ways
            if site.kind in (DecisionKind.PICK, DecisionKind.MATCH, DecisionKind.COND)
        }
        for site, look in looks.items():
            if self._first_look.setdefault(site, look) != look:
                self._moved.add(site)

    def add(self, trail: Trail, telling: bool = True) -> None:
        """A compared input. One of nothing but zeros tells little: twice nothing is minus nothing."""
        self.observe(trail)
        for site, way in trail.ways:
            self._counts[site][way] += 1
        if telling:
            self.trails.append(trail)
            for goal in trail.ways:
                self._told[goal] = self._told.get(goal, 0) + 1

    def counts(self, site: Site) -> bool:
        """Whether the place decides by the inputs: eager was seen to, or the graph does.

        The graph alone is not asked: `if t > 100: break` is no branch of it but the condition of its loop, and what
        capture has lost is in no graph. Eager alone is not: what `if n % 2` looks at is not always seen to move.
        """
        if site in self._moved:
            return True
        # `self.flag and x.sum() > 0` is one branch of the graph, and its first operand none.
        is_operand = site.kind in (DecisionKind.AND, DecisionKind.OR)
        return self.kept_alive is not None and not is_operand and self.kept_alive(site)

    def goals(self) -> list[Goal]:
        """Ways that no telling input took, or too few to be sure, of places that were reached."""
        every = [(decision.site, way) for decision in self.decisions() for way in range(len(decision.counts))]
        return [(site, way) for site, way in every if way not in site.raising and self.told((site, way)) < _ENOUGH]

    def is_goal(self, goal: Goal) -> bool:
        """Of a way that was taken: whether it is one of those."""
        return self.told(goal) < _ENOUGH and goal[0] in self._counts and self.counts(goal[0])

    def told(self, goal: Goal) -> int:
        """How many telling inputs took this way."""
        return self._told.get(goal, 0)

    def sites(self) -> tuple[Site, ...]:
        """All places that were met, in the order of the code."""
        return tuple(sorted(self._counts, key=lambda site: (site.file, site.line, site.column)))

    def decisions(self) -> tuple[Decision, ...]:
        found = [Decision(site, tuple(counts)) for site, counts in self._counts.items() if self.counts(site)]
        return tuple(sorted(found, key=lambda d: (d.site.file, d.site.line, d.site.column)))


@dataclass(frozen=True, slots=True)
class Apart:
    """A place at which one input went another way than all others that passed it."""

    site: Site
    fact: str


def apart(trail: Trail, others: Iterable[Trail]) -> list[Apart]:
    """What makes this run another case than the others: ways that none of them took, rounds that none of them made."""
    every = list(others)
    passed = {site for other in every for site, _ in other.ways}
    taken = {goal for other in every for goal in other.ways}
    found = [
        Apart(site, f"`{site.text}` {way_words(site, way)}")
        for site, way in trail.ways
        if site in passed and (site, way) not in taken and not site.kind.is_loop
    ]
    for site, trips in trail.trips.items():
        made = {tuple(other.trips[site]) for other in every if site in other.trips}
        if made and tuple(trips) not in made:
            found.append(Apart(site, f"`{site.text}` makes {' and '.join(map(str, trips[:3]))} rounds"))
    return sorted(
        found, key=lambda apart: (apart.site.kind in (DecisionKind.AND, DecisionKind.OR), apart.site.kind.is_loop)
    )
