"""Which sizes to try. Other ones than the example's, distinct where they are distinct, and the ends of every range."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from trueport.load.job import FreeSize, Leaf

Sizes = Mapping[str, int]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
_RANDOM_PLANS = 200


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
        far = max(64, 4 * self.example)
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


@dataclass(frozen=True, slots=True)
class Plan:
    """Values for all free sizes. A `wanted` one was asked for and must be tried."""

    sizes: dict[str, int]
    wanted: bool = False


def example_sizes(leaves: Sequence[Leaf], values: Sequence[object]) -> dict[str, int]:
    """The value of each free size in these inputs."""
    found: dict[str, int] = {}
    for leaf, value in zip(leaves, values, strict=True):
        if isinstance(value, torch.Tensor):
            for axis, size in leaf.axes.items():
                found.setdefault(size.size.name, (value.shape[axis] - size.offset) // size.multiple)
    return found


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


def size_plans(groups: Sequence[Group], example: Sizes, extra: Sequence[Sizes], seed: int) -> Iterator[Plan]:
    """Assignments to try, those asked for first, then the most telling. None is the example's, none comes twice."""
    seen = {tuple(sorted(example.items()))}
    asked = (Plan({**example, **wanted}, wanted=True) for wanted in extra)
    drawn = (Plan(sizes) for sizes in _telling(groups, example, random.Random(seed)))
    for plan in itertools.chain(asked, drawn):
        key = tuple(sorted(plan.sizes.items()))
        fits = all(
            group.admits(plan.sizes[name]) if plan.wanted else group.within_reach(plan.sizes[name])
            for group in groups
            for name in group.names
        )
        if fits and key not in seen:
            seen.add(key)
            yield plan


def _telling(groups: Sequence[Group], example: Sizes, chance: random.Random) -> Iterator[dict[str, int]]:
    if not groups:
        return
    yield _apart(groups, example, larger_first=True)
    yield {**example, **{name: 1 for group in groups for name in group.names}}
    yield _apart(groups, example, larger_first=False)
    # Sizes may have to stay equal, or multiples of something, for eager to accept them.
    for change in _COMMON_CHANGES:
        yield {**example, **{name: change(group.example) for group in groups for name in group.names}}
    for size in (0, 1, 2):
        for group in groups:
            yield {**example, **group.assign(size)}
    for group in groups:
        ends = (group.minimum, group.reach if group.reach == group.maximum else group.example)
        for size in (*ends, group.example + 1, group.example - 1, *_PRIMES[:6]):
            yield {**example, **group.assign(size)}
    for _ in range(_RANDOM_PLANS):
        plan = dict(example)
        for group in groups:
            upper = max(min(group.reach, 2 * group.example + 8), group.minimum)
            plan.update(group.assign(chance.randint(group.minimum, upper)))
        yield plan


_COMMON_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda size: 2 * size,
    lambda _: 0,
    lambda size: size // 2,
    lambda size: size + 1,
    lambda size: size - 1,
    lambda size: 3 * size,
)


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
