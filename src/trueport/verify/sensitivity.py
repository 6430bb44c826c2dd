"""When two answers differ, is it the model that cannot tell? Asked only after a difference, because it costs runs.

A model may amplify the last bit of its inputs (`sin(1e4 * x)`), jump at a boundary (`floor`), or leave an order open
(`topk` of equal values). There eager's own answer moves when its inputs, or the results of its operators, move by a
rounding error, and a difference of that size says nothing about the export. Only what eager itself does then is taken
as an excuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from trueport.verify.compare import Expected, Tolerance, as_float64, judge, scale_of
from trueport.verify.rounding import RoundedOtherwise
from trueport.verify.tensors import RuntimeValue, TensorData, from_torch, to_torch

_MOVES = 3
_MOVES_OF_CHOICES = 8
"""Which of many nearly equal candidates wins (detections whose scores are all but 1), or in which round a loop stops:
some do twice by chance."""
_FACTOR = 32.0
"""Rounding happens at every operation and not only at the inputs, so moving the inputs shows only part of it.

Smaller for coarse dtypes, where a model that amplifies nothing would otherwise be excused from anything: 32 steps of
bfloat16 are a quarter of the value.
"""
_NO_DIGITS = 0.1
"""Of the tensor's scale: where last bits move an answer that far, it has no digits that could be compared."""
_TIE_BREAKER = 1e-3

Answer = Sequence[Expected]
Ways = frozenset[object]
Eager = Callable[[Sequence[object]], tuple[Answer | None, Ways]]
"""Eager's answer, or None where it refuses the input; and the ways that the tests of the user's code took."""


def excuse(
    eager: Eager,
    values: Sequence[object],
    expected: Answer,
    got: Sequence[RuntimeValue],
    tolerances: Sequence[Tolerance],
    precision: float,
    seed: int,
) -> str | None:
    """Why the difference says nothing, or None where it does. Every output that differs must be covered.

    `precision` is the rounding step of the coarsest dtype that the model computes in.
    """
    differing = [at for at, tol in enumerate(tolerances) if judge(expected[at], got[at], tol).difference is not None]
    chance = torch.Generator().manual_seed(seed)

    def covered_by(moves: Sequence[Answer], which: Sequence[int]) -> bool:
        # Where what a loop computes is noise, so is in which round it stops: a count goes with the numbers.
        noise = any(_is_noise(expected[at], [move[at] for move in moves]) for at in which)
        return all(
            (noise and _is_integral(expected[at]))
            or _covered(expected[at], got[at], [move[at] for move in moves], tolerances[at], precision)
            for at in which
        )

    def moved(move: Callable[[object], object]) -> tuple[list[Answer], set[Ways]]:
        ran = [eager([move(value) for value in values]) for _ in range(_MOVES)]
        return [answer for answer, _ in ran if answer is not None and len(answer) == len(expected)], {w for _, w in ran}

    again, ways = eager(values)
    if again is not None and len(again) == len(expected) and not _same(expected, again, tolerances):
        return "eager gives another answer each time"
    nudged, others = moved(lambda value: _nudged(value, chance))
    if others != {ways} and nudged and covered_by(nudged, differing):
        # `(x == 7).any()` goes another way beside 7, and so it should: whole numbers are meant as they are.
        nudged, _ = moved(lambda value: _nudged(value, chance, whole=False))
    if nudged and covered_by(nudged, differing):
        return "eager's own answer moves as far when its inputs move by their last bit"
    if all(_is_integral(expected[at]) for at in differing):
        parted, _ = moved(lambda value: _parted(value, chance))
        if parted and covered_by(parted, differing):
            return "equal values, whose order eager leaves open"
    for whole in (False, True):
        rounded, others = _rounded_otherwise(eager, values, range(seed, seed + _MOVES_OF_CHOICES), whole)
        rounded = [answer for answer in rounded if len(answer) == len(expected)]
        # A test that goes another way (`if x.sum():` where parts cancel) is meant as it is, and excuses nothing.
        if others == {ways} and rounded and covered_by(rounded, differing):
            return "eager's own answer moves as far when its operators round their last bit otherwise"
    return None


def _rounded_otherwise(
    eager: Eager, values: Sequence[object], seeds: Sequence[int], whole: bool
) -> tuple[list[Answer], set[Ways]]:
    answers, ways = [], set()
    for seed in seeds:
        with RoundedOtherwise(seed, whole):
            answer, way = eager(values)
        ways.add(way)
        answers += [] if answer is None else [answer]
    return answers, ways


def _same(one: Answer, other: Answer, tolerances: Sequence[Tolerance]) -> bool:
    return all(
        judge(mine, _carried(theirs), tolerance).difference is None
        for mine, theirs, tolerance in zip(one, other, tolerances, strict=True)
    )


def _covered(
    expected: Expected, got: RuntimeValue, moves: Sequence[Expected], tolerance: Tolerance, precision: float
) -> bool:
    ours, theirs = _tensors(expected), [to_torch(item) for item in (got if isinstance(got, tuple) else (got,))]
    if len(ours) == len(theirs):
        theirs = [_like(*each) for each in zip(ours, theirs, strict=True)]
    moved = [_tensors(move) for move in moves]
    if any(_shapes(move) != _shapes(ours) for move in moved):
        return True
    if _shapes(theirs) != _shapes(ours) or any(a.dtype != b.dtype for a, b in zip(ours, theirs, strict=True)):
        return False
    columns = zip(ours, theirs, zip(*moved, strict=True), strict=True)
    return all(_elements_covered(one, other, others, tolerance, precision) for one, other, others in columns)


def _elements_covered(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    moved: Sequence[torch.Tensor],
    tolerance: Tolerance,
    precision: float,
) -> bool:
    if not (ours.is_floating_point() or ours.is_complex()):
        stays = torch.stack([move == ours for move in moved]).all(dim=0)
        return not bool((stays & (ours != theirs)).any())
    centre, given = as_float64(ours), as_float64(theirs)
    distances, typical = _moved_by(centre, moved)
    if typical > _NO_DIGITS * scale_of(centre):
        return True
    spread = distances.amax(dim=0).clamp(min=typical)
    factor = min(_FACTOR, 0.5 * tolerance.relative / precision)
    return bool((_distance(centre, given) <= tolerance.allowed(centre) + factor * spread).all())


def _moved_by(centre: torch.Tensor, moved: Sequence[torch.Tensor]) -> tuple[torch.Tensor, float]:
    """How far each element went each time, and how far they do mostly."""
    distances = torch.stack([_distance(centre, as_float64(move)) for move in moved])
    finite = distances[distances.isfinite()]
    return distances, float(finite.mean()) if finite.numel() else 0.0


def _is_noise(expected: Expected, moves: Sequence[Expected]) -> bool:
    """Whether no digit of an answer stays when last bits move."""
    ours = _tensors(expected)
    if not all(t.is_floating_point() or t.is_complex() for t in ours):
        return False
    moved = [_tensors(move) for move in moves]
    if any(_shapes(move) != _shapes(ours) for move in moved):
        return False
    columns = [(as_float64(one), others) for one, others in zip(ours, zip(*moved, strict=True), strict=True)]
    return bool(columns) and all(_moved_by(one, others)[1] > _NO_DIGITS * scale_of(one) for one, others in columns)


def _like(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Pairs of the runtime's as the complex numbers that they stand for."""
    pairs = ours.is_complex() and not theirs.is_complex() and theirs.shape[-1:] == (2,)
    return torch.view_as_complex(theirs) if pairs else theirs


def _distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    distance = torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, (one - other).abs())
    return torch.where(distance.isnan(), torch.inf, distance)


def _nudged(value: object, chance: torch.Generator, whole: bool = True) -> object:
    """Every float moved by one rounding step. Zeros stay, so that a test against zero still says what it says; without
    `whole`, so do all whole numbers."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():  # each part by its own last bit
        parts = torch.view_as_real(value.resolve_conj())
        moved_parts = _nudged(parts, chance, whole)
        assert isinstance(moved_parts, torch.Tensor)
        return torch.view_as_complex(moved_parts)
    if not value.is_floating_point():
        return value
    signs = torch.randint(0, 2, tuple(value.shape), generator=chance) * 2.0 - 1.0
    centre = as_float64(value.cpu())
    moved = centre * (1.0 + torch.finfo(value.dtype).eps * signs.double())
    if not whole:
        moved = torch.where(centre == centre.round(), centre, moved)
    return moved.to(device=value.device, dtype=value.dtype)


def _parted(value: object, chance: torch.Generator) -> object:
    """Equal floats made unequal."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return value
    centre = as_float64(value.cpu())
    width = _TIE_BREAKER * max(float(centre.abs().max()), 1.0)
    moved = centre + width * torch.randn(tuple(value.shape), dtype=torch.float64, generator=chance)
    return moved.to(device=value.device, dtype=value.dtype)


def _is_integral(value: Expected) -> bool:
    """Indices. A bool is a decision and not an order, and is not excused by moving what it decides on."""
    return all(not (t.is_floating_point() or t.is_complex() or t.dtype is torch.bool) for t in _tensors(value))


def _tensors(value: Expected) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu()]
    if isinstance(value, bool | int | float):
        return [torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)]
    return [item.detach().cpu() for item in value]


def _shapes(tensors: Sequence[torch.Tensor]) -> list[torch.Size]:
    return [tensor.shape for tensor in tensors]


def _carried(value: Expected) -> RuntimeValue:
    if isinstance(value, torch.Tensor | bool | int | float):
        return from_torch(_tensors(value)[0])
    carried: tuple[TensorData, ...] = tuple(from_torch(item) for item in value)
    return carried
