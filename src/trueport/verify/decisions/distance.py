"""How far a test is from going the other way. What guides the search for inputs that make it.

A test is measured by two numbers: how far it is from being true, and from being false; one of them is zero. `a < b` is
`a - b` from being true. Of several tests that must all hold the distances add up; where one is enough, the nearest
counts. A tensor of tests is measured element by element, so `(ids == 7).any()` is as far as the element nearest to 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_LARGEST = 1e30
_TINY = 1e-12
"""What is equal is this far from being unequal, lest the distance of a test that fails be zero."""
_MOST_ELEMENTS = 1 << 20
_TURNED = {"eq": False, "ne": True, "lt": False, "ge": True, "gt": False, "le": True}
"""Comparisons, and whether each is another one negated."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a test, or each of a tensor of tests, is from either answer (float64, 0 where it gives that answer)."""

    to_true: torch.Tensor
    to_false: torch.Tensor

    def plain(self) -> tuple[float, float]:
        """Of a single test. Several in one are as a Python `if` would refuse them, and say nothing."""
        if self.to_true.numel() != 1:
            return (_LARGEST, _LARGEST)
        return (float(self.to_true), float(self.to_false))


def of_truth(value: Any) -> Distance | None:
    """Of `if value:`; None where nothing can be measured."""
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.bool:
            flags = value.detach().cpu().to(torch.float64)
            return Distance(1.0 - flags, flags)
        return of_comparison("ne", value, 0)
    if isinstance(value, bool):
        return Distance(_one(not value), _one(value))
    if isinstance(value, int | float):
        return of_comparison("ne", value, 0)
    if isinstance(value, list | tuple | dict | str):
        return of_comparison("ne", len(value), 0)
    return None


def of_comparison(word: str, left: Any, right: Any) -> Distance | None:
    """Of `left < right` and its like; None where there is nothing to subtract."""
    if word in ("in", "not_in"):
        return _of_membership(word, left, right)
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return _of_sequences(word, left, right)
    if (pair := of_numbers(word, left, right)) is not None:
        return Distance(*(torch.tensor(far, dtype=torch.float64) for far in pair))
    one, other = _number(left), _number(right)
    if one is None or other is None or max(one.numel(), other.numel()) > _MOST_ELEMENTS:
        return None
    try:
        gap = one - other
    except RuntimeError:  # shapes that do not fit: eager will say so itself
        return None
    gap = torch.nan_to_num(gap, nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
    size, none = gap.abs().clamp(min=_TINY), torch.zeros_like(gap)
    match word:
        case "eq" | "ne":
            equal = Distance(gap.abs(), torch.where(gap == 0, 1.0, 0.0))
            return equal if word == "eq" else negated(equal)
        case "lt" | "ge":
            less = Distance(torch.where(gap < 0, none, size), torch.where(gap < 0, size, none))
            return less if word == "lt" else negated(less)
        case "gt" | "le":
            more = Distance(torch.where(gap > 0, none, size), torch.where(gap > 0, size, none))
            return more if word == "gt" else negated(more)
    return None


def _single(value: Any) -> float | None:
    """A plain number, or a tensor that is one; None for anything else, and for what is not finite."""
    if isinstance(value, torch.Tensor):
        if value.dim() or value.is_complex() or value.is_meta:
            return None
        value = value.item()
    if not isinstance(value, bool | int | float):
        return None
    return float(value) if math.isfinite(value) else None


def of_numbers(word: str, left: Any, right: Any) -> tuple[float, float] | None:
    """The same of two numbers, without tensors on the way: most tests are that, and a search makes thousands. None
    where one of them is something else."""
    if word not in _TURNED or (this := _single(left)) is None or (that := _single(right)) is None:
        return None
    gap = max(-_LARGEST, min(this - that, _LARGEST))
    size = max(abs(gap), _TINY)
    match word:
        case "eq" | "ne":
            pair = (abs(gap), 1.0 if gap == 0 else 0.0)
        case "lt" | "ge":
            pair = (0.0, size) if gap < 0 else (size, 0.0)
        case _:
            pair = (0.0, size) if gap > 0 else (size, 0.0)
    return (pair[1], pair[0]) if _TURNED[word] else pair


def _of_membership(word: str, item: Any, container: Any) -> Distance | None:
    if not isinstance(container, list | tuple | set | frozenset | range | torch.Tensor) or len(container) > 1024:
        return None
    each = [found for other in container if (found := of_comparison("eq", item, other)) is not None]
    if not each:
        return None
    found = either(each)
    return found if word == "in" else negated(found)


def _of_sequences(word: str, left: Sequence[Any], right: Sequence[Any]) -> Distance | None:
    """`(h, w) == (8, 8)`: item by item. What comes first of two is not measured."""
    if word not in ("eq", "ne") or len(left) != len(right):
        return None
    each = [of_comparison("eq", one, other) for one, other in zip(left, right, strict=True)]
    known = [distance for distance in each if distance is not None]
    if not known or len(known) < len(each):
        return None
    return both(known) if word == "eq" else negated(both(known))


def negated(distance: Distance) -> Distance:
    return Distance(distance.to_false, distance.to_true)


def both(parts: Sequence[Distance]) -> Distance:
    """`and`: all must hold, one failure is enough."""
    return Distance(_over(_total, [p.to_true for p in parts]), _over(_nearest, [p.to_false for p in parts]))


def either(parts: Sequence[Distance]) -> Distance:
    return negated(both([negated(part) for part in parts]))


def every(distance: Distance, dim: Any = None, keepdim: bool = False) -> Distance:
    """`.all()`, over all elements or along some axes."""
    dims = tuple(range(distance.to_true.dim())) if dim is None else dim
    if distance.to_true.numel() == 0 and dim is None:
        return Distance(_one(False), _one(True))
    if distance.to_true.dim() == 0:
        return distance
    return Distance(distance.to_true.sum(dims, keepdim), distance.to_false.amin(dims, keepdim))


def some(distance: Distance, dim: Any = None, keepdim: bool = False) -> Distance:
    """`.any()`."""
    return negated(every(negated(distance), dim, keepdim))


def _over(join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    result = tensors[0]
    for tensor in tensors[1:]:
        result = join(result, tensor)
    return result


def _total(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return one + other


def _nearest(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.minimum(one, other)


def _one(condition: bool) -> torch.Tensor:
    return torch.tensor(1.0 if condition else 0.0, dtype=torch.float64)


def _number(value: Any) -> torch.Tensor | None:
    if isinstance(value, torch.Tensor):
        if value.is_complex() or value.is_meta:
            return None
        plain = value.detach().cpu()
        return (plain.float() if plain.element_size() == 1 and plain.is_floating_point() else plain).double()
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return torch.tensor(float(value), dtype=torch.float64)
    return None
