"""Inputs to check a model on: the sizes to try crossed with the families of values, the most telling first.

Nothing here knows what a model accepts. Eager decides that: an input that eager refuses is no test, and the next one
is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from trueport.load.job import Job, Leaf, sizes_in
from trueport.verify.inputs.named import NOTHING, Named
from trueport.verify.inputs.offsets import in_order, offsets_among
from trueport.verify.inputs.sizes import groups_of, size_plans
from trueport.verify.inputs.values import (
    Facts,
    Family,
    Filling,
    InputKind,
    Manner,
    are_alike,
    draw_number,
    draw_tensor,
    everywhere,
    facts_of,
    is_number,
    kind_of,
    small_content,
)

_AT_NEW_SIZES = (Family.SEEN, Family.RESAMPLED, Family.SORTED, Family.PADDED)
"""By turns: rows like the example's own, with the largest at the end, or with rows that hold nothing."""
_TAMER = (Family.REPEATED, Family.LOW)

_NONFINITE = (Family.NAN, Family.INFINITE, Family.NONFINITE)

_FLOATS = (
    Family.NORMAL,
    Family.LARGE,
    Family.SEEN,
    Family.ZEROS,
    Family.BELOW,
    Family.NAMED,
    Family.HALVES,
    Family.SINGLE,
    Family.HALVES,
    Family.TINY,
    Family.ONES,
    Family.TIES,
    Family.CONSTANT,
    Family.SINGLE,
    Family.LARGE,
    Family.HALVES,
    Family.TINY,
    Family.TIES,
    Family.ONE_HOT,
    Family.NEGATED,
    Family.SORTED,
    Family.NAMED,
    Family.HALVES,
    Family.PADDED,
    Family.BELOW,
    Family.NAMED,
)
_INTEGERS = (
    Family.SEEN,
    Family.ROWS,
    Family.LOW,
    Family.EDGES,
    Family.LARGE,
    Family.BEYOND,
    Family.LENGTHS,
    Family.BELOW,
    Family.ABOVE,
    Family.TIES,
    Family.NAMED,
    Family.ZEROS,
    Family.SORTED,
    Family.ONES,
    Family.SINGLE,
    Family.CONSTANT,
    Family.NAMED,
)
_MASKS = (
    Family.RAGGED,
    Family.SEEN,
    Family.OFF,
    Family.RAGGED,
    Family.ON,
    Family.ONE_HOT,
    Family.NEGATED,
    Family.BEYOND,
    Family.BEYOND,
)
"""In these orders, each kind of input by itself; a kind whose list is shorter begins again, so that other masks come
beside the same floats. Between two of them, all elements are one of the numbers that the model names."""
_FIRST = 8
"""So many of the floats come before what is only tried where the model asks for it."""
_SHOWS_LITTLE = (Family.ONE_HOT, Family.RAGGED)
_MOST_FILLED = 16

_NEIGHBOURS = 9
"""How many other values a Python number is given."""
_ROUNDS = 20
_MOST_ELEMENTS = 1 << 20
"""Of all inputs together. A larger example may be grown fourfold."""


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
    share: float = 1.0
    """How many times as large as the example it is."""

    @cached_property
    def values(self) -> tuple[object, ...]:
        return self.fill()

    @cached_property
    def content(self) -> object:
        """Equal for two sets of inputs that hold the same, where they are small; large ones hardly come twice, and are
        equal to nothing. (An `id` may be that of one that is gone: what is tried would be up to the memory.)"""
        found = small_content(self.values)
        return object() if found is None else found


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
    named: Named = NOTHING,
) -> Iterator[Drawn]:
    """Input sets in the order in which they are worth trying; the same for the same seed.

    `tied` sizes move together, `held` ones stay as in the example: what the exported file itself says of them.
    `nonfinite` asks for NaN and infinities among the floats; `named` are numbers of the model's own.
    """
    example = sizes_in(job.leaves, example_values)
    groups = groups_of(job.free_sizes, example, tied, held)
    room = Room(job.leaves, example_values)
    plans = size_plans(groups, example, extra_sizes, seed, named.lengths, room)
    spots = [_Spot(*each) for each in zip(job.leaves, example_values, strict=True)]
    kinds = {spot.kind for spot in spots if spot.leaf.is_input}
    manners = _manners(job.leaves, kinds, named)
    offsets = offsets_among(job.leaves) if named.trusts_offsets else ()
    turn = 0

    def at(sizes: Mapping[str, int], manner: Manner, fallback: bool = False, wanted: bool = False) -> Drawn:
        nonlocal turn
        turn += 1
        number = seed * 1_000_003 + turn

        def fill() -> tuple[object, ...]:
            chance = torch.Generator().manual_seed(number)
            values = _alike(job.leaves, [_value(spot, sizes, manner, chance, named) for spot in spots], manner)
            return in_order(job.leaves, values, offsets) if offsets else tuple(values)

        return Drawn(fill, sizes, manner.words(kinds), fallback, wanted, room.share(sizes))

    def both(sizes: Mapping[str, int], manner: Manner) -> Iterator[Drawn]:
        """Integers may be indices, which eager refuses beyond the end: then the same floats beside tamer integers."""
        yield at(sizes, manner)
        if InputKind.INTEGERS in kinds and manner.integers.family is not Family.SEEN and len(kinds) > 1:
            yield at(sizes, replace(manner, integers=Filling(Family.SEEN)), fallback=True)

    if InputKind.MASK in kinds and len(kinds) > 1:  # what users send most: like the example, and nothing is hidden
        yield at(example, Manner(Filling(Family.SEEN), Filling(Family.SEEN), Filling(Family.ON)))
        turn = 0  # what else is drawn does not depend on it
    if nonfinite and InputKind.FLOATS in kinds:
        yield from (at(example, everywhere(family), wanted=True) for family in _NONFINITE)
    # A new size, two manners of filling, and so on, the manners by turns at the example's sizes and at the new ones.
    pending = manners
    drawn_plans = 0
    for plan in plans:
        for tries, manner in enumerate(_at_new_sizes(kinds, drawn_plans)):
            yield at(plan.sizes, manner, fallback=tries > 0, wanted=plan.wanted)
        drawn_plans += not plan.wanted
        if drawn_plans > 1:
            for where, manner in zip((example, plan.sizes), pending, strict=False):
                yield from both(where if 0 < room.share(where) <= 4 else example, manner)
    for manner in pending:
        yield from both(example, manner)


def _at_new_sizes(kinds: Collection[InputKind], nth: int) -> Iterator[Manner]:
    """Tried in turn until eager accepts one: indices and lengths may have to fit the size. An input that has grown may
    be a table that another one looks up, or one that it holds the lengths of."""
    floats = Filling(_AT_NEW_SIZES[nth % len(_AT_NEW_SIZES)])
    if nth and InputKind.INTEGERS in kinds:
        families = (Family.ROWS,) if nth % 2 else (Family.LENGTHS, Family.ROWS)
        for family in families:
            yield Manner(floats, Filling(family, nth // 2), Filling(Family.RAGGED))
    yield Manner(floats, Filling(Family.SEEN), Filling(Family.RAGGED))
    for family in _TAMER:
        yield everywhere(family)


def _manners(leaves: Sequence[Leaf], kinds: Collection[InputKind], named: Named) -> Iterator[Manner]:
    """One after the other: first as many as the longest list has that means something here, then again in other
    combinations."""
    numbers = [Family.NUMBERS] * _NEIGHBOURS if any(is_number(leaf) for leaf in leaves if leaf.is_input) else []
    wide = [Family.WIDE] if named.makes_wide_integers else []  # once: what rounds is undecided at such magnitudes
    floats = _counted(_interleaved([*numbers, *_FLOATS[:_FIRST], *wide, *_FLOATS[_FIRST:]], len(named.values)))
    integers = _counted(_interleaved([*numbers, *_INTEGERS], len(named.indices)))
    masks = _counted(_MASKS)
    lengths = {InputKind.FLOATS: len(floats), InputKind.INTEGERS: len(integers), InputKind.MASK: len(masks)}
    longest = max((lengths[kind] for kind in kinds), default=0)
    rounds = _ROUNDS
    for at in range(rounds * longest):
        round_ = at // longest
        chosen, mask = _again(floats, at, round_), _again(masks, at + round_, round_)
        if chosen.family is Family.LARGE:  # a low score that is the only one shown, beside what is hidden
            mask = Filling(_SHOWS_LITTLE[chosen.nth % 2])
        yield Manner(chosen, _again(integers, at + round_, round_), mask)


def _again(fillings: Sequence[Filling], at: int, round_: int) -> Filling:
    family, nth = fillings[at % len(fillings)]
    return Filling(family, nth + round_)


def _interleaved(families: Sequence[Family], named: int) -> list[Family]:
    filled = [Family.FILLED] * min(named, _MOST_FILLED)
    pairs = itertools.zip_longest(families, filled)
    return [family for pair in pairs for family in pair if family is not None]


def _counted(families: Sequence[Family]) -> list[Filling]:
    return [Filling(family, families[:at].count(family)) for at, family in enumerate(families)]


@dataclass(frozen=True)
class _Spot:
    """What is filled again and again: its example is looked at once."""

    leaf: Leaf
    example: object

    @cached_property
    def kind(self) -> InputKind:
        return kind_of(self.leaf, self.example)

    @cached_property
    def facts(self) -> Facts:
        assert isinstance(self.example, torch.Tensor)
        return facts_of(self.leaf, self.example)


def _value(
    spot: _Spot,
    sizes: Mapping[str, int],
    manner: Manner,
    chance: torch.Generator,
    named: Named,
) -> object:
    leaf, example = spot.leaf, spot.example
    if not leaf.is_input:
        return example
    family, nth = manner.of(spot.kind)
    if is_number(leaf) and isinstance(example, bool | int | float):
        return draw_number(leaf, example, family, nth, named)
    if isinstance(example, torch.Tensor):
        own = {name for axis in leaf.axes.values() for name in axis.names}
        others = tuple(size for name, size in sizes.items() if name not in own)
        rows = tuple(dict.fromkeys((*named.rows, *others)))  # an input may be the table that another looks up
        named = replace(named, others=others, rows=rows or tuple(sizes.values()))
        shape = shape_at(leaf, example, sizes)
        return draw_tensor(leaf, example, shape, family, chance, nth, named, spot.facts)
    return example


def _alike(leaves: Sequence[Leaf], values: Sequence[object], manner: Manner) -> list[object]:
    """The same values, where the manner asks for inputs that hold the same."""
    first: dict[tuple[object, ...], torch.Tensor] = {}
    found: list[object] = []
    for leaf, value in zip(leaves, values, strict=True):
        same: object = value
        if leaf.is_input and isinstance(value, torch.Tensor) and are_alike(manner.of(kind_of(leaf, value))):
            same = first.setdefault((value.dtype, value.shape), value).clone()
        found.append(same)
    return found


class Room:
    """How large inputs may grow: all of them together, in elements."""

    def __init__(self, leaves: Sequence[Leaf], values: Sequence[object]) -> None:
        pairs = zip(leaves, values, strict=True)
        self._tensors = [(leaf, value) for leaf, value in pairs if isinstance(value, torch.Tensor)]
        self._now = max(sum(value.numel() for _, value in self._tensors), 1)
        self._found: dict[tuple[tuple[str, int], ...], int] = {}

    def elements(self, sizes: Mapping[str, int]) -> int:
        key = tuple(sizes.items())  # few sizes are asked for again and again
        if key not in self._found:
            self._found[key] = sum(math.prod(shape_at(leaf, value, sizes)) for leaf, value in self._tensors)
        return self._found[key]

    def share(self, sizes: Mapping[str, int]) -> float:
        """How many times the example these sizes are."""
        return self.elements(sizes) / self._now

    def admits(self, sizes: Mapping[str, int]) -> bool:
        return self.elements(sizes) <= max(_MOST_ELEMENTS, 4 * self._now)


def shape_at(leaf: Leaf, example: torch.Tensor, sizes: Mapping[str, int]) -> list[int]:
    shape = list(example.shape)
    for axis, size in leaf.axes.items():
        shape[axis] = size.length(sizes)
    return shape
