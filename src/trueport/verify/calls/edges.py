"""The edge values of each dtype: where translations and kernels go wrong."""

from __future__ import annotations

import functools
from enum import IntEnum

import torch

from trueport.verify.calls.ranges import Range


class Level(IntEnum):
    """How far from everyday an operand is, and so what a difference there weighs."""

    ORDINARY = 0
    EXTREME = 1
    NONFINITE = 2


LARGEST_ORDINARY = 1e6
"""Floats beyond it, and subnormal ones, are extreme."""

_ORDINARY = (
    0.0, 0.5, 1.5, 2.5, 3.5, 0.25, 0.1, 0.75, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 1e-3, 10.0, 15.5, 16.0, 31.0, 63.0,
    64.0, 65.0, 88.0, 100.5, 127.0, 128.0, 255.0, 256.0, 1000.5, 2048.0, 4095.5, 32767.0, 32768.0, 65535.0, 100000.0,
)  # fmt: skip
_EXTREME = (
    2.0**23 - 0.5, 2.0**23 + 1, 2.0**24, 2.0**24 + 1, 2.0**24 + 2, 2.0**31, 2.0**31 - 1, 2.0**32, 2.0**53, 2.0**53 + 1,
    2.0**53 - 1, 2.0**62, 2.0**63, 2.0**64, 1e10, 1e18, 1e30, 1e-6, 1e-10, 1e-30, 1e-38, 3e37, 1e200, 1e-200,
)  # fmt: skip
_PARTS = (0.0, 0.5, 1.0, 1.5, 3.0, 0.1, 8.0, 100.5)
_EXTREME_PARTS = (1e10, 1e18, 1e-10, 1e-30, 1e-38)
"""Of complex numbers: each with each, of either sign, are many already."""
_POWERS = (2, 4, 5, 7, 8, 15, 16, 24, 31, 32, 33, 52, 53, 62, 63)


@functools.cache
def edge_values(dtype: torch.dtype, level: Level) -> torch.Tensor:
    """Those of one level, sorted; integers have no extreme ones, for they are exact."""
    if dtype is torch.bool:
        return torch.tensor([False, True] if level is Level.ORDINARY else [], dtype=dtype)
    if dtype.is_complex:
        return _complex(dtype, level)
    if not dtype.is_floating_point:
        return _integers(dtype) if level is Level.ORDINARY else torch.empty(0, dtype=dtype)
    facts = torch.finfo(dtype)
    if level is Level.NONFINITE:
        found = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=torch.float64).to(dtype)
        return found[~_finite(found)]  # some float8 kinds have no infinity
    tiny = facts.smallest_normal
    values = [*_ORDINARY, 1 + facts.eps, 1 - facts.eps / 2]
    if level is Level.EXTREME:
        values = [*_EXTREME, facts.max, facts.max / 2, tiny, tiny / 2, tiny * facts.eps, facts.max**0.5, 1 / facts.max]
    both = torch.tensor([sign * value for value in values for sign in (1.0, -1.0)], dtype=torch.float64)
    rounded = both[both.abs() <= facts.max].to(torch.float32 if facts.bits < 32 else dtype).to(dtype)
    distinct = _distinct(rounded)
    return distinct[level_of(distinct) == level]


def level_of(values: torch.Tensor) -> torch.Tensor:
    """The level of each element; a complex number is as far from everyday as either part."""
    if values.is_complex():
        return level_of(torch.view_as_real(values.resolve_conj())).amax(-1)
    if not values.is_floating_point():
        return torch.zeros(values.shape, dtype=torch.int64)
    wide = values.double() if values.element_size() > 1 else values.float().double()
    magnitude = wide.abs()
    tiny = torch.finfo(values.dtype).smallest_normal if values.element_size() > 1 else 0.0
    ordinary = (magnitude == 0) | ((magnitude >= max(tiny, 1e-5)) & (magnitude <= LARGEST_ORDINARY))
    found = torch.where(ordinary, int(Level.ORDINARY), int(Level.EXTREME))
    return torch.where(_finite(wide), found, int(Level.NONFINITE))


def within(values: torch.Tensor, known: Range) -> torch.Tensor:
    """Those that the model can give; the ends of a narrow range of integers too. Complex numbers have no order."""
    if values.dtype is torch.bool or values.is_complex() or not values.numel():
        return values
    if values.is_floating_point():
        wide = values.double() if values.element_size() > 1 else values.float().double()
        return values[((wide >= known.low) & (wide <= known.high)) | ~_finite(wide)]
    numbers = values.tolist()
    kept = [number for number in numbers if known.low <= number <= known.high]
    ends = {int(end) for end in (known.low, known.high) if min(numbers) <= end <= max(numbers)}
    return torch.tensor(sorted({*kept, *ends}), dtype=values.dtype)


def every_value(dtype: torch.dtype) -> torch.Tensor:
    """All of an 8-bit dtype."""
    facts = torch.iinfo(dtype)
    return torch.arange(facts.min, facts.max + 1, dtype=torch.int16).to(dtype)


def _complex(dtype: torch.dtype, level: Level) -> torch.Tensor:
    """Pairs of parts, at least one of which is of this level."""
    facts = torch.finfo(dtype)
    usual, rare = [*_PARTS], [0.0, 1.5]
    extreme = [*_EXTREME_PARTS, facts.max, facts.max**0.5, facts.smallest_normal]
    parts = {Level.ORDINARY: usual, Level.EXTREME: [*rare, *extreme], Level.NONFINITE: [*rare, torch.inf]}[level]
    signed = [sign * part for part in parts for sign in (1.0, -1.0)]
    signed += [torch.nan] if level is Level.NONFINITE else []
    pairs = torch.tensor([[one, other] for one in signed for other in signed], dtype=dtype.to_real())
    found = torch.view_as_complex(pairs)
    return found[level_of(found) == level]


def _integers(dtype: torch.dtype) -> torch.Tensor:
    facts = torch.iinfo(dtype)
    numbers = {0, 1, 2, 3, 5, 7, 10, 100, facts.max, facts.max - 1, facts.min, facts.min + 1}
    for power in _POWERS:
        numbers |= {2**power, 2**power - 1, 2**power + 1}
    both = {sign * number for number in numbers for sign in (1, -1)}
    return torch.tensor(sorted(number for number in both if facts.min <= number <= facts.max), dtype=dtype)


def _distinct(values: torch.Tensor) -> torch.Tensor:
    """Without repetitions; 0.0 and -0.0 are two."""
    seen: dict[tuple[float, float], float] = {}
    for number in values.double().tolist() if values.element_size() > 1 else values.float().double().tolist():
        seen[(number, float(torch.copysign(torch.tensor(1.0), torch.tensor(number))))] = number
    ordered = sorted(seen.values())
    return (
        torch.tensor(ordered, dtype=torch.float64).to(torch.float32).to(values.dtype)
        if (values.element_size() < 4)
        else torch.tensor(ordered, dtype=values.dtype)
    )


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values.isfinite() if values.element_size() > 1 else values.float().isfinite()
