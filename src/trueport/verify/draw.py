"""Inputs to check a model on: the sizes to try crossed with the families of values, the most telling first.

Nothing here knows what a model accepts. Eager decides that: an input that eager refuses is no test, and the next one
is drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from trueport.load.job import Job, Leaf
from trueport.verify.offsets import in_order
from trueport.verify.sizes import example_sizes, groups_of, size_plans
from trueport.verify.values import Family, draw_number, draw_tensor, is_integer, is_mask, is_number

_AT_NEW_SIZES = (Family.SEEN, Family.REPEATED, Family.LOW)
"""Tried in turn at each new size until eager accepts one: indices and lengths may have to fit the size."""

_NONFINITE = (Family.NAN, Family.INFINITE, Family.NONFINITE)

_NEIGHBOURS = 8
"""How many other values a Python number is given."""
_ROUNDS = 20


@dataclass(frozen=True)
class Drawn:
    """One set of inputs: a value per leaf, the free sizes it has, and how it was filled.

    A `fallback` repeats the sizes of the one before with tamer values, and is only of use where that was refused;
    so the values are made when they are first asked for.
    """

    fill: Callable[[], tuple[object, ...]] = field(repr=False, compare=False)
    sizes: Mapping[str, int]
    family: str
    fallback: bool = False
    wanted: bool = False
    """Of sizes that were asked for."""

    @cached_property
    def values(self) -> tuple[object, ...]:
        return self.fill()


def asked_for(values: Sequence[object], sizes: Mapping[str, int]) -> Drawn:
    """Inputs that were not drawn: something is to be seen on exactly these."""
    return Drawn(lambda: tuple(values), sizes, "numbers that torch decides by", wanted=True)


def draw(
    job: Job,
    example_values: Sequence[object],
    seed: int,
    extra_sizes: Sequence[Mapping[str, int]] = (),
    *,
    tied: Sequence[Collection[str]] = (),
    held: Collection[str] = (),
    nonfinite: bool = False,
) -> Iterator[Drawn]:
    """Input sets in the order in which they are worth trying; the same for the same seed.

    `tied` sizes move together, `held` ones stay as in the example: what the exported file itself says of them.
    `nonfinite` asks for NaN and infinities among the floats.
    """
    example = example_sizes(job.leaves, example_values)
    plans = size_plans(groups_of(job.free_sizes, example, tied, held), example, extra_sizes, seed)
    families = _families(job.leaves, example_values)
    turn = 0

    def at(
        sizes: Mapping[str, int], family: Family, nth: int = 0, fallback: bool = False, wanted: bool = False
    ) -> Drawn:
        nonlocal turn
        turn += 1
        number = seed * 1_000_003 + turn

        def fill() -> tuple[object, ...]:
            chance = torch.Generator().manual_seed(number)
            leaves = zip(job.leaves, example_values, strict=True)
            return in_order(job.leaves, [_value(leaf, value, sizes, family, chance, nth) for leaf, value in leaves])

        return Drawn(fill, sizes, family.value, fallback, wanted)

    if nonfinite and any(isinstance(value, torch.Tensor) and value.is_floating_point() for value in example_values):
        yield from (at(example, family, wanted=True) for family in _NONFINITE)
    # A new size, two families of values, and so on, the families by turns at the example's sizes and at the new ones.
    pending = iter(families)
    drawn_plans = 0
    for plan in plans:
        for tries, family in enumerate(_AT_NEW_SIZES):
            yield at(plan.sizes, family, fallback=tries > 0, wanted=plan.wanted)
        drawn_plans += not plan.wanted
        if drawn_plans > 1:
            for where, (nth, family) in zip((example, plan.sizes), pending, strict=False):
                yield at(where, family, nth)
    again = ((nth + round_ * _NEIGHBOURS, family) for round_ in range(1, _ROUNDS) for nth, family in families)
    for nth, family in itertools.chain(pending, again):
        yield at(example, family, nth)


def _families(leaves: Sequence[Leaf], values: Sequence[object]) -> list[tuple[int, Family]]:
    """The families that mean something for these inputs, each with the how-manieth of its kind it is."""
    families = [Family.SEEN, Family.NORMAL, Family.ZEROS, Family.NEGATED, Family.ONES, Family.LARGE, Family.TINY]
    families += [Family.ONE_HOT, Family.CONSTANT, Family.SORTED]
    inputs = [(leaf, value) for leaf, value in zip(leaves, values, strict=True) if leaf.is_input]
    tensors = [(leaf, value) for leaf, value in inputs if isinstance(value, torch.Tensor)]
    if any(is_mask(leaf, value) for leaf, value in tensors):
        families[2:2] = [Family.RAGGED, Family.ON, Family.OFF]
    if any(is_integer(value) and not is_mask(leaf, value) and leaf.value_range is None for leaf, value in tensors):
        families.append(Family.BEYOND)
    if any(is_number(leaf) for leaf, _ in inputs):
        families[1:1] = [Family.NUMBERS] * _NEIGHBOURS
    return [(families[:at].count(family), family) for at, family in enumerate(families)]


def _value(
    leaf: Leaf, example: object, sizes: Mapping[str, int], family: Family, chance: torch.Generator, nth: int
) -> object:
    if not leaf.is_input:
        return example
    if is_number(leaf) and isinstance(example, bool | int | float):
        return draw_number(leaf, example, family, nth)
    if isinstance(example, torch.Tensor):
        shape = list(example.shape)
        for axis, size in leaf.axes.items():
            shape[axis] = size.length(sizes[size.size.name])
        return draw_tensor(leaf, example, shape, family, chance)
    return example
