"""Which sizes to try. Other ones than the example's, distinct where they are distinct, and the ends of every range."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trueport.load.job import FreeSize

Sizes = Mapping[str, int]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
_RANDOM_PLANS = 200
_FAR = 5_000
_ALONE = (67, 17, 1031, 64, 16, 8, 32, 100, 128, 4, 33, 257)
"""Beyond a table or a tile of 64, powers of two, which some code treats apart, and beside them; once really large."""
_MANY = 4_097
"""Elements of one input, beyond what kernels do in one piece."""


class Admits(Protocol):
    """Whether inputs of these sizes are not too large to be tried."""

    def admits(self, sizes: Sizes) -> bool: ...

    def elements(self, sizes: Sizes) -> int: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Free sizes that only move together, and the range in which they may."""

    names: tuple[str, ...]
    example: int
    minimum: int
    maximum: int | None

    @property
    def reach(self) -> int:
        """Far larger sizes than the example's cost time and memory and say nothing that these do not."""
        far = max(_FAR, 4 * self.example)
        return far if self.maximum is None else min(self.maximum, far)

    @property
    def is_movable(self) -> bool:
        return self.minimum < self.reach

    def admits(self, size: int) -> bool:
        return size >= self.minimum and (self.maximum is None or size <= self.maximum)

    def within_reach(self, size: int) -> bool:
        return self.minimum <= size <= self.reach

    def assign(self, size: int) -> dict[str, int]:
        return dict.fromkeys(self.names, size)

    def joined_by(self, other: FreeSize) -> Group:
        upper = [end for end in (self.maximum, other.maximum) if end is not None]
        return Group(
            (*self.names, other.name), self.example, max(self.minimum, other.minimum), min(upper) if upper else None
        )


def ratios_of(groups: Iterable[Group], sizes: Mapping[str, int]) -> dict[str, float]:
    """By the first name of each group, how many times the example's its size is."""
    return {group.names[0]: sizes[group.names[0]] / max(group.example, 1) for group in groups}


@dataclass(frozen=True, slots=True)
class SizePlan:
    """Values for all free sizes. A `wanted` one was asked for and must be tried."""

    sizes: dict[str, int]
    wanted: bool = False


def groups_of(
    free: Sequence[FreeSize], example: Sizes, tied: Sequence[Collection[str]] = (), held: Collection[str] = ()
) -> tuple[Group, ...]:
    """The sizes that can move, those that the model ties to one another in one group."""
    groups: list[Group] = []
    for size in free:
        if size.name in held:
            continue
        partners = next((set(names) for names in tied if size.name in names), set())
        at = next((at for at, group in enumerate(groups) if partners.intersection(group.names)), None)
        if at is None:
            groups.append(Group((size.name,), example[size.name], size.minimum, size.maximum))
        else:
            groups[at] = groups[at].joined_by(size)
    return tuple(groups)


def size_plans(
    groups: Sequence[Group],
    example: Sizes,
    extra: Sequence[Sizes],
    seed: int,
    named: Sequence[int] = (),
    room: Admits | None = None,
) -> Iterator[SizePlan]:
    """Assignments to try, those asked for first, then the most telling. None is the example's, none comes twice.

    `named` are sizes that the model itself speaks of; `room` tells what is too large.
    """
    seen = {tuple(sorted(example.items()))}
    asked = (SizePlan({**example, **wanted}, wanted=True) for wanted in extra)
    drawn = (SizePlan(sizes) for sizes in _telling(groups, example, random.Random(seed), named, room))
    for plan in itertools.chain(asked, drawn):
        key = tuple(sorted(plan.sizes.items()))
        fits = all(
            group.admits(plan.sizes[name]) if plan.wanted else group.within_reach(plan.sizes[name])
            for group in groups
            for name in group.names
        )
        if fits and key not in seen and (plan.wanted or room is None or room.admits(plan.sizes)):
            seen.add(key)
            yield plan


def _telling(
    groups: Sequence[Group], example: Sizes, chance: random.Random, named: Sequence[int], room: Admits | None
) -> Iterator[dict[str, int]]:
    """The most telling first. Sizes for one group at a time come in between the others, a few at a time, so that a
    check that tries little has some of each."""
    if not groups:
        return
    alone = ({**example, **group.assign(size)} for size in _ALONE for group in groups)
    own = ({**example, **group.assign(size)} for size in named for group in groups)
    yield _apart(groups, example, larger_first=True)
    yield _together(groups, example, lambda _: 1)
    yield _apart(groups, example, larger_first=False)
    yield from itertools.islice(alone, len(groups))
    yield _together(groups, example, lambda _: 0)
    yield from itertools.islice(own, len(groups))
    if room is not None:  # what comes first is mostly the batch, and each of its rows is to have so many
        yield _grown(groups[0], example, room, _MANY)
        yield from (_grown(group, example, room, _MANY * max(groups[0].example, 1)) for group in groups[1:])
    yield from itertools.islice(own, len(groups))
    # Sizes may have to stay equal, or multiples of something, for eager to accept them.
    for change in _COMMON_CHANGES:
        yield _together(groups, example, change)
        yield from itertools.islice(own, 2)
        yield from itertools.islice(alone, 1)
    for one, other in itertools.combinations(groups, 2):
        yield {**example, **one.assign(_ALONE[0]), **other.assign(_ALONE[0])}
    for size in (0, 1, 2):
        for group in groups:
            yield {**example, **group.assign(size)}
            yield from itertools.islice(own, 1)
            yield from itertools.islice(alone, 1)
    for group in groups:
        ends = (group.minimum, group.reach if group.reach == group.maximum else group.example)
        for size in (*ends, group.example + 1, group.example - 1):
            yield {**example, **group.assign(size)}
    yield from alone
    yield from own
    for group in groups:
        yield from ({**example, **group.assign(size)} for size in _PRIMES[:6])
    for _ in range(_RANDOM_PLANS):
        plan = dict(example)
        for group in groups:
            upper = max(min(group.reach, 2 * group.example + 8), group.minimum)
            plan.update(group.assign(chance.randint(group.minimum, upper)))
        yield plan


_COMMON_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda size: 2 * size,
    lambda size: size // 2,
    lambda size: size + 1,
    lambda size: size - 1,
    lambda size: 3 * size,
)


def _together(groups: Sequence[Group], example: Sizes, change: Callable[[int], int]) -> dict[str, int]:
    return {**example, **{name: change(group.example) for group in groups for name in group.names}}


def _grown(group: Group, example: Sizes, room: Admits, many: int) -> dict[str, int]:
    """As large as it takes for the inputs to have so many elements, and so many times the example's size: some sizes
    have to be multiples of something."""
    now = room.elements(example)
    each = (room.elements({**example, **group.assign(group.example + 1)}) - now) or 1
    unit = max(group.example, 1)
    return {**example, **group.assign(unit * math.ceil((group.example + max(0, many - now) // each + 1) / unit))}


def _apart(groups: Sequence[Group], example: Sizes, larger_first: bool) -> dict[str, int]:
    """Each group at another prime, some larger and some smaller than in the example."""
    plan, taken = dict(example), set(example.values())
    for at, group in enumerate(groups):
        larger = larger_first == (at % 2 == 0)
        free = [prime for prime in (*_PRIMES, 1) if group.within_reach(prime) and prime not in taken]
        above = [prime for prime in free if prime > group.example]
        below = [prime for prime in reversed(free) if 1 < prime < group.example]
        choice = next(iter((above or below) if larger else (below or above)), None)
        if choice is not None:
            taken.add(choice)
            plan.update(group.assign(choice))
    return plan
