"""Which sizes to try. Other ones than the example's, distinct where they are distinct, and the ends of every range."""

from __future__ import annotations

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
    """Free sizes that only move together, with the values that they may take."""

    names: tuple[str, ...]
    example: int
    minimum: int
    maximum: int
    bounds: tuple[int, ...] = ()
    """The ends that the user declared, where they are within reach."""

    def admits(self, size: int) -> bool:
        return self.minimum <= size <= self.maximum

    def assign(self, size: int) -> dict[str, int]:
        return dict.fromkeys(self.names, size)


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
        here = example[size.name]
        # Far larger sizes than the example's cost time and memory and say nothing that these do not.
        reach = max(64, 4 * here)
        maximum = reach if size.maximum is None else min(size.maximum, reach)
        bounds = tuple(end for end in (size.minimum, size.maximum) if end is not None and end <= maximum)
        group = Group((size.name,), here, size.minimum, max(maximum, here), bounds)
        partners = next((set(names) for names in tied if size.name in names), set())
        for at, other in enumerate(groups):
            if partners.intersection(other.names):
                groups[at] = Group(
                    (*other.names, size.name),
                    other.example,
                    max(other.minimum, group.minimum),
                    min(other.maximum, group.maximum),
                    (*other.bounds, *group.bounds),
                )
                break
        else:
            groups.append(group)
    return tuple(groups)


def size_plans(groups: Sequence[Group], example: Sizes, extra: Sequence[Sizes], seed: int) -> Iterator[dict[str, int]]:
    """Assignments to try, the most telling first, then random ones. None is the example's, none comes twice."""
    if not groups:
        return
    seen = {tuple(sorted(example.items()))}
    for plan in _plans(groups, example, extra, random.Random(seed)):
        key = tuple(sorted(plan.items()))
        if key not in seen and all(group.admits(plan[name]) for group in groups for name in group.names):
            seen.add(key)
            yield plan


def _plans(
    groups: Sequence[Group], example: Sizes, extra: Sequence[Sizes], chance: random.Random
) -> Iterator[dict[str, int]]:
    for wanted in extra:
        yield {**example, **wanted}
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
        for size in (*group.bounds, group.example + 1, group.example - 1, *_PRIMES[:6]):
            yield {**example, **group.assign(size)}
    for _ in range(_RANDOM_PLANS):
        plan = dict(example)
        for group in groups:
            plan.update(group.assign(chance.randint(group.minimum, min(group.maximum, 2 * group.example + 8))))
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
        free = [prime for prime in (*_PRIMES, 1) if group.admits(prime) and prime not in taken]
        above = [prime for prime in free if prime > group.example]
        below = [prime for prime in reversed(free) if 1 < prime < group.example]
        choice = next(iter((above or below) if larger else (below or above)), None)
        if choice is not None:
            taken.add(choice)
            plan.update(group.assign(choice))
    return plan
