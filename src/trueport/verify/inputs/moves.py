"""Small changes to an input that may bring a test nearer to going the other way."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import torch

from trueport.load.job import Job, Leaf
from trueport.verify.inputs.offsets import in_order, offsets_among
from trueport.verify.inputs.sizes import Group
from trueport.verify.inputs.values import Family, draw_tensor, is_integer

_SCALES = (-1.0, 0.0, 10.0, 0.1, 1000.0, -30.0)
_SHIFTS = (1.0, -1.0, 10.0, -10.0, 1000.0, -1000.0)
_LARGE_SIZE = 128
_LARGEST_SIZE = 4096


@dataclass(frozen=True)
class Candidate:
    """One set of inputs on its way through the search."""

    values: tuple[object, ...]
    sizes: Mapping[str, int]

    @cached_property
    def is_telling(self) -> bool:
        """Whether any float of the input is not zero. Without floats, whether any tensor holds something."""
        tensors = [value for value in self.values if isinstance(value, torch.Tensor)]
        floats = [tensor for tensor in tensors if tensor.is_floating_point()]
        if floats:
            return any(bool((tensor != 0).any()) for tensor in floats)
        return not tensors or any(tensor.numel() for tensor in tensors)


class What(Enum):
    SCALE = "scale"
    SHIFT = "shift"
    FILL = "fill"
    ONE = "one element"
    NUDGE = "nudge one element"
    DRIFT = "all elements in a drawn direction"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class Move:
    """One change: of all elements of a leaf, of one of them, of all float leaves (`leaf` is None), or of a size.

    `at` is the element of ONE and NUDGE, and the seed of the direction of DRIFT.
    """

    what: What
    amount: float
    leaf: int | None = None
    at: int = 0
    group: int = 0

    @property
    def is_straight(self) -> bool:
        """Whether a crossing can be reckoned from two points: half the amount goes half as far."""
        return self.what in (What.SHIFT, What.NUDGE)

    def further(self) -> Move | None:
        """The same again and more of it, for a move that helped."""
        if self.what in (What.SHIFT, What.NUDGE, What.DRIFT):
            return replace(self, amount=2 * self.amount)
        if self.what is What.SCALE and abs(self.amount) not in (0.0, 1.0):
            return replace(self, amount=abs(self.amount))
        return None


class Mover:
    """Applies moves to the inputs of one model."""

    def __init__(
        self, job: Job, groups: Sequence[Group], constants: Sequence[float], others: Sequence[float] = ()
    ) -> None:
        """`constants` are the numbers of the test itself, `others` those of tests that may lead to it."""
        self._leaves = job.leaves
        self._offsets = offsets_among(job.leaves)
        self._groups = groups
        self._own = frozenset(constants)
        self._constants = sorted({*constants, *others}, key=lambda c: (abs(c), c))
        self._movable = [at for at, leaf in enumerate(job.leaves) if leaf.is_input]

    def first(self, base: Candidate, distance: float | None, asks_tensor: bool = False) -> Iterator[Move]:
        """Those that are worth trying at once, the likeliest first. Large sizes cost most and come last, but for those
        that the test itself mentions, unless it asks a tensor (`asks_tensor`): there the values are what counts."""
        plain = [at for at in self._movable if not isinstance(base.values[at], torch.Tensor)]
        tensors = [at for at in self._movable if isinstance(base.values[at], torch.Tensor)]
        near = [near for constant in self._constants for near in (constant, constant + 1, constant - 1)]
        for at in plain:
            yield from (Move(What.FILL, value, at) for value in (*near, 0, 1, 2))
        if distance is not None and 0 < distance < 1e6:
            for at in (*plain, *tensors):
                yield from (Move(What.SHIFT, sign * distance * 1.001, at) for sign in (1, -1))
        resizing = [
            Move(What.SIZE, size, group=at)
            for at, group in enumerate(self._groups)
            for size in _sizes_near(base, group, distance, near)
        ]
        own = () if asks_tensor else [value + by for value in self._own for by in (0, 1, -1)]
        late = [move for move in resizing if move.amount > _LARGE_SIZE and move.amount not in own]
        yield from (move for move in resizing if move not in late)
        for scale in _SCALES:
            yield Move(What.SCALE, scale)
        for at in tensors:
            yield from (Move(What.FILL, value, at) for value in near)
            yield from (Move(What.ONE, value, at, place) for value in near for place in (0, -1))
            yield from (Move(What.SHIFT, shift, at) for shift in _SHIFTS)
            if len(tensors) > 1:
                yield from (Move(What.SCALE, scale, at) for scale in _SCALES)
        yield from late

    def chance(self, base: Candidate, distance: float | None, dice: random.Random) -> Move:
        """Any move, drawn."""
        if self._groups and dice.random() < 0.25:
            at = dice.randrange(len(self._groups))
            group = self._groups[at]
            by = dice.choice([1, -1, 2, -2, *_whole(distance)])
            return Move(What.SIZE, base.sizes[group.names[0]] + by, group=at)
        leaf = dice.choice(self._movable) if self._movable else None
        if leaf is None or dice.random() < 0.15:
            return Move(What.SCALE, dice.choice([-1.0, 0.5, 2.0, 5.0, 0.0]))
        value = base.values[leaf]
        step = dice.choice([1.0, -1.0]) * 10 ** dice.uniform(-2, 2)
        if distance is not None and distance < 1e6 and dice.random() < 0.5:
            step = dice.choice([1.0, -1.0]) * distance
        count = value.numel() if isinstance(value, torch.Tensor) else 1
        place = dice.randrange(count) if count else 0
        drift = Move(What.DRIFT, abs(step), leaf, dice.randrange(1 << 30))
        constant = dice.choice(self._constants) if self._constants else 0.0
        return dice.choice(
            [
                Move(What.SHIFT, step, leaf),
                Move(What.SHIFT, step / max(count, 1), leaf),
                Move(What.NUDGE, step, leaf, place),
                Move(What.NUDGE, step, leaf, place),
                drift,
                drift,
                Move(What.ONE, constant, leaf, place),
                Move(What.SCALE, dice.choice([-1.0, 0.5, 2.0, 3.0]), leaf),
            ]
        )

    def apply(self, move: Move, base: Candidate) -> Candidate | None:
        """The changed input; None where the change is none, or leads out of the declared range."""
        if move.what is What.SIZE:
            return self._resized(move, base)
        values = list(base.values)
        for at in self._movable if move.leaf is None else [move.leaf]:
            values[at] = _changed(self._leaves[at], values[at], move)
        same = all(one is other for one, other in zip(values, base.values, strict=True))
        return None if same else Candidate(in_order(self._leaves, values, self._offsets), base.sizes)

    def _resized(self, move: Move, base: Candidate) -> Candidate | None:
        group, size = self._groups[move.group], int(move.amount)
        if not group.admits(size) or size > _LARGEST_SIZE or base.sizes[group.names[0]] == size:
            return None
        sizes = {**base.sizes, **group.assign(size)}
        return Candidate(resized(self._leaves, base.values, sizes), sizes)


def resized(leaves: Sequence[Leaf], values: Sequence[object], sizes: Mapping[str, int]) -> tuple[object, ...]:
    """The same values at other sizes, each axis cut off or begun again."""
    result: list[object] = []
    for leaf, value in zip(leaves, values, strict=True):
        if isinstance(value, torch.Tensor) and leaf.axes:
            shape = list(value.shape)
            for axis, free in leaf.axes.items():
                shape[axis] = free.length(sizes)
            if shape != list(value.shape):
                value = draw_tensor(leaf, value, shape, Family.REPEATED, torch.Generator())
        result.append(value)
    return in_order(leaves, result)


def _sizes_near(base: Candidate, group: Group, distance: float | None, near: Sequence[float]) -> list[int]:
    """The sizes that a test mentions, and those around the present one."""
    sizes = {int(value) for value in (*near, *_around(base, group, distance)) if value == int(value)}
    return sorted(size for size in sizes if group.admits(size) and size <= _LARGEST_SIZE)


def _around(base: Candidate, group: Group, distance: float | None) -> list[int]:
    now = base.sizes[group.names[0]]
    steps = [1, -1, *_whole(distance)]
    return [0, 1, 2, 2 * now, now // 2, *(now + step for step in steps)]


def _whole(distance: float | None) -> list[int]:
    if distance is None or not 0 < distance < _LARGEST_SIZE:
        return []
    near = int(distance)
    return [near, -near, near + 1, -near - 1]


def _changed(leaf: Leaf, value: object, move: Move) -> object:
    if isinstance(value, torch.Tensor):
        return _changed_tensor(leaf, value, move)
    if not isinstance(value, bool | int | float):
        return value
    moved = _arithmetic(float(value), move)
    if isinstance(value, bool):
        return bool(moved) if moved in (0.0, 1.0) else value
    if leaf.value_range is not None:
        moved = min(max(moved, leaf.value_range[0]), leaf.value_range[1])
    if isinstance(value, int):
        return round(moved) if abs(moved) < 2**53 and round(moved) != value else value
    return moved if moved != value else value


def _arithmetic(value: float, move: Move) -> float:
    match move.what:
        case What.SCALE:
            return value * move.amount
        case What.SHIFT | What.NUDGE | What.DRIFT:
            return value + move.amount
        case _:
            return float(move.amount)


def _changed_tensor(leaf: Leaf, value: torch.Tensor, move: Move) -> torch.Tensor:
    if not value.numel() or value.is_complex() or (value.element_size() == 1 and value.is_floating_point()):
        return value
    if move.leaf is None and not value.is_floating_point():
        return value  # a move of all leaves is one of magnitudes
    if value.dtype is torch.bool:
        return _changed_mask(value, move)
    whole = is_integer(value)
    amount = round(move.amount) if whole and move.what is not What.SCALE else move.amount
    wide = value.detach().cpu().double()
    match move.what:
        case What.SCALE:
            wide = wide * amount
        case What.SHIFT:
            wide = wide + (amount or (1 if move.amount > 0 else -1))
        case What.FILL:
            wide = torch.full_like(wide, amount)
        case What.ONE:
            wide.view(-1)[move.at % wide.numel()] = amount
        case What.NUDGE:
            wide.view(-1)[move.at % wide.numel()] += amount or (1 if move.amount > 0 else -1)
        case What.DRIFT:
            direction = torch.Generator().manual_seed(move.at)
            wide = wide + move.amount * torch.randn(wide.shape, dtype=wide.dtype, generator=direction)
    if leaf.value_range is not None:
        wide = wide.clamp(*leaf.value_range)
    limits = torch.iinfo(value.dtype) if whole else torch.finfo(value.dtype)
    if bool((wide.abs() > limits.max).any()) or (whole and limits.min == 0 and bool((wide < 0).any())):
        return value
    moved = (wide.round() if whole else wide).to(value.dtype).to(value.device)
    return value if torch.equal(moved, value) else moved


def _changed_mask(value: torch.Tensor, move: Move) -> torch.Tensor:
    match move.what:
        case What.SCALE | What.SHIFT:
            return ~value
        case What.FILL:
            return torch.full_like(value, bool(move.amount))
        case _:
            moved = value.detach().clone().contiguous()
            flat = moved.view(-1)
            flat[move.at % flat.numel()] = ~flat[move.at % flat.numel()]
            return moved
