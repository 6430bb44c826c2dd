"""When two answers differ, is it rounding? Asked only after a difference, because it costs runs.

A model may amplify the last bit of a sum (a stack of normalisations), jump at a boundary (`floor` of a product of
matrices), or choose between candidates that are all but equal. There eager's own answer moves when its operators round
otherwise, and a difference of that size decides nothing about the export. What may be moved, and by how much, is the
rule of `rounding.py`; what does not move under it is not excused, and what is excused is counted as not decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from trueport.verify.judging.compare import Expected, Judgement, Tolerance, as_float64, judge, scale_of
from trueport.verify.judging.rounding import RoundedOtherwise
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, from_torch, to_torch

_RUNS = (1.0, 1.0, 1.0, 8.0, 8.0, 8.0, 8.0, 8.0)
"""How many times as far as its last bit each result is moved, in each of the runs."""
_ROUNDS = 8
_FEWER = 0.7
"""A jump (`floor`) must be met by one of the runs, in every element that differs. As long as another round of runs
explains a good part of what was left, there is another; of a real fault, none explains any more."""
_FACTOR = 32.0
"""A sum of many numbers, or another algorithm for the same function, is off by more than the last bit of a few runs.

Smaller for coarse dtypes, where a model that amplifies nothing would otherwise be excused from anything: 32 steps of
bfloat16 are a quarter of the value.
"""

_NO_DIGITS = 0.1
"""Of the tensor's scale, and of the element: where rounding moves it that far, it has no digits to compare."""

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
    """Why the difference decides nothing, or None where it does. Every element that differs must be covered.

    `precision` is the rounding step of the coarsest dtype that the model computes in.
    """
    verdicts = [judge(*each) for each in zip(expected, got, tolerances, strict=True)]
    differing = [at for at, verdict in enumerate(verdicts) if verdict.difference is not None]
    again, _ = eager(values)
    if again is not None and len(again) == len(expected) and not _same(expected, again, tolerances):
        return "eager gives another answer each time"
    ours = [_tensors(value) for value in expected]
    moved: list[_Moved] = []
    before: float = sum(_differ(one) for at, one in enumerate(verdicts) if at in differing)
    left: float = math.inf
    for round_ in range(_ROUNDS):
        for run, times in enumerate(_RUNS):
            with RoundedOtherwise(seed + len(_RUNS) * round_ + run, times) as rounded:
                answer, _ = eager(values)
            if answer is not None and len(answer) == len(expected):
                moved.append(_Moved(times, [_tensors(value) for value in answer], rounded.decomposed))
                left = sum(_unexplained(ours[at], got[at], at, moved, tolerances[at], precision) for at in differing)
                if left == 0:  # what one run explains, no other takes back
                    return "eager's own answer moves as far when its sums and functions round otherwise"
        if not moved or left > _FEWER * before:
            return None
        before = left
    return None


class _Moved(NamedTuple):
    """An answer of eager's, with rounding so many times as coarse."""

    times: float
    outputs: list[list[torch.Tensor]]
    decomposed: bool


def _size(centre: torch.Tensor) -> torch.Tensor:
    finite = torch.where(centre.isfinite(), centre.abs(), 0.0)
    return finite.clamp(min=scale_of(centre))


def _spread(ours: torch.Tensor, moved: Sequence[torch.Tensor], shares: Sequence[float] = ()) -> torch.Tensor:
    """How far each element went, at the most; counted by `shares` of each."""
    centre = as_float64(ours)
    weights = shares or [1.0] * len(moved)
    distances = [_distance(centre, as_float64(move)) * share for move, share in zip(moved, weights, strict=True)]
    return torch.stack(distances).amax(dim=0)


def _differ(verdict: Judgement) -> float:
    return max(verdict.difference.wrong, 1) if verdict.difference is not None else 0


def _same(one: Answer, other: Answer, tolerances: Sequence[Tolerance]) -> bool:
    return all(
        judge(mine, _carried(theirs), tolerance).difference is None
        for mine, theirs, tolerance in zip(one, other, tolerances, strict=True)
    )


def _unexplained(
    ours: Sequence[torch.Tensor],
    got: RuntimeValue,
    at: int,
    moves: Sequence[_Moved],
    tolerance: Tolerance,
    precision: float,
) -> float:
    """How many elements of output `at` differ, and rounding does not explain it."""
    theirs = [to_torch(item) for item in (got if isinstance(got, tuple) else (got,))]
    if len(ours) == len(theirs):
        theirs = [_like(*each) for each in zip(ours, theirs, strict=True)]
    moved = [move.outputs[at] for move in moves]
    if any(_shapes(move) != _shapes(ours) for move in moved):
        return 0  # how much there is to compare is itself a matter of rounding
    if _shapes(theirs) != _shapes(ours) or any(a.dtype != b.dtype for a, b in zip(ours, theirs, strict=True)):
        return math.inf
    times, decomposed = [move.times for move in moves], any(move.decomposed for move in moves)
    columns = zip(ours, theirs, zip(*moved, strict=True), strict=True)
    return sum(
        _elements_left(one, other, others, times, tolerance, precision, decomposed) for one, other, others in columns
    )


def _elements_left(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    moved: Sequence[torch.Tensor],
    times: Sequence[float],
    tolerance: Tolerance,
    precision: float,
    decomposed: bool,
) -> float:
    """Element by element: one that rounding does not move must be right, whatever happens beside it."""
    if not (ours.is_floating_point() or ours.is_complex()):
        return _whole_numbers_left(ours, theirs, moved)
    centre, given = as_float64(ours), as_float64(theirs)
    others = [as_float64(move) for move in moved]
    no_digits = _spread(ours, moved) > _NO_DIGITS * _size(centre)
    # A NaN or an infinity is no matter of degree: only where rounding alone brings it about is it explained; or where
    # a matrix is singular but for rounding (the logarithm of its determinant is -15 or -inf).
    strange = centre.isfinite() != given.isfinite()
    alike = torch.stack([(other == given) | (other.isnan() & given.isnan()) for other in others]).any(dim=0)
    alike |= no_digits & decomposed
    spread = _spread(ours, moved, [1 / each for each in times])
    factor = min(_FACTOR, 0.5 * tolerance.relative / precision)
    plain = tolerance.allowed(centre)
    explained = (_distance(centre, given) <= plain + factor * spread) | (strange & alike)
    explained |= given.isfinite() & no_digits
    return int((~explained | (strange & ~alike)).sum())


def _whole_numbers_left(ours: torch.Tensor, theirs: torch.Tensor, moved: Sequence[torch.Tensor]) -> int:
    """Counts, indices and decisions: a count of 200 that rounding moves by one is not 28. One of which no digit stays
    (which of several equals is the largest, in which round a chaotic loop ends) may be any."""
    stays = torch.stack([move == ours for move in moved]).all(dim=0)  # a float64 would not tell 2 ** 60 from the next
    spread = _spread(ours, moved)
    near = _distance(as_float64(ours), as_float64(theirs)) <= _FACTOR * spread
    near |= spread > _NO_DIGITS * as_float64(ours).abs()
    return int(((stays | ~near) & (ours != theirs)).sum())


def _like(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Pairs of the runtime's as the complex numbers that they stand for."""
    pairs = ours.is_complex() and not theirs.is_complex() and theirs.shape[-1:] == (2,)
    return torch.view_as_complex(theirs) if pairs else theirs


def _distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    distance = torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, (one - other).abs())
    return torch.where(distance.isnan(), torch.inf, distance)


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
