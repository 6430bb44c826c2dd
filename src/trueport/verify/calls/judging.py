"""Whether the runtime's answer to a call is eager's.

1. What is exact is equal: integers, comparisons, copies, minimum and maximum, rounding to whole numbers.
2. Arithmetic may differ in the last digits of the result, and by what is smaller than the smallest normal number: a
   runtime may take subnormals for zero.
3. Sums may differ in the last digits of the sum of magnitudes, which the same operator gives on the magnitudes.
4. Other functions may differ by what the dtype allows everywhere else (`compare.py`).
5. Either part of a complex number is as exact as the number is large, in 2 to 4: a product is a difference of products.
   What is only moved, chosen or negated is exact part by part. Where the truth is beyond the dtype, any answer is right
   that is not finite: an infinite part makes the next product infinite or none, by how it is written.

NaN and infinities are to be where eager has them; a complex number with an infinite part is infinite, whatever the
other part is, and one with a NaN is none. In 2 to 4, an answer is right too that is no farther from the truth
than eager's own, by the same call in float64. Of elements by themselves, so is what eager gives in another company of
them (`run.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch

from trueport.verify.calls.kinds import Exactness
from trueport.verify.judging.compare import as_float64, tolerance_for

Again = Callable[[Callable[[torch.Tensor], torch.Tensor]], Sequence[torch.Tensor] | None]
"""Eager's results on other operands: each one through a function. None where it refuses them."""

_ARITHMETIC_STEPS = 4
_PIECE = 1 << 14


def differing(
    expected: torch.Tensor,
    got: torch.Tensor,
    exactness: Exactness,
    at: int,
    again: Again,
    mixes: bool = False,
    position_error: float = 0.0,
) -> torch.Tensor | None:
    """The elements that differ, None where none does. `at` is which result of the call it is; `mixes`: each element of
    it is made of many, so that it is as exact as the largest are."""
    if expected.numel() == 0:
        return None
    if not (expected.is_floating_point() or expected.is_complex()):
        wrong = _bits(expected) != _bits(got)
        return wrong if bool(wrong.any()) else None
    wrong_parts = _differing(expected, got, exactness, at, again, mixes, position_error)
    return wrong_parts.any(-1) if wrong_parts is not None and expected.is_complex() else wrong_parts


def _differing(
    expected: torch.Tensor,
    got: torch.Tensor,
    exactness: Exactness,
    at: int,
    again: Again,
    mixes: bool,
    position_error: float,
) -> torch.Tensor | None:
    """The same of floats; of complex numbers, by part."""
    if _is_near(expected, got, exactness, position_error):
        return None
    right, given = as_float64(expected), as_float64(got)
    if exactness is Exactness.EXACT:
        wrong = _error(right, given) > 0
        return wrong if bool(wrong.any()) else None
    dtype = expected.dtype.to_real()
    if expected.is_complex():
        right, given = _without_lost_parts(right), _without_lost_parts(given)
    error = _error(right, given)
    size = _sizes(right, expected.is_complex())
    wrong = error > _allowed(dtype, size, exactness) + position_error
    if mixes:
        wrong &= error > tolerance_for(dtype).allowed(size)
    if not bool(wrong.any()):
        return None
    if exactness is Exactness.SUMS and (sums := again(torch.abs)) is not None:
        magnitude = as_float64(sums[at].abs())
        if expected.is_complex():
            magnitude = magnitude.unsqueeze(-1)
        slack = tolerance_for(dtype).relative * torch.where(magnitude.isfinite(), magnitude, 0.0)
        overflows = ~magnitude.isfinite()  # the order of the additions decides whether the sum is infinite on its way
        wrong &= (error > slack) & ~overflows
    for widened in (_widened, _all_widened) if dtype is not torch.float64 else ():
        if bool(wrong.any()) and (truth := again(widened)) is not None and truth[at].shape == expected.shape:
            exact = as_float64(truth[at])
            if exact.shape != right.shape:
                continue
            exact = _without_lost_parts(exact) if expected.is_complex() else exact
            own, theirs = _error(right, exact), _error(given, exact)
            # Beyond the dtype both are infinite, and a sum may be on its way there; no number at all is not. Where
            # eager is infinite and the truth is not, only the truth is better.
            own = torch.where(own.isfinite() | (exact.abs() > torch.finfo(dtype).max), own, 0.0)
            near = theirs <= torch.maximum(1.5 * own, _allowed(dtype, _sizes(exact, expected.is_complex()), exactness))
            if expected.is_complex():
                near |= (_sizes(exact, True) > torch.finfo(dtype).max) & ~given.isfinite()
            else:
                near &= ~given.isnan() | exact.isnan()
            wrong &= ~near
    if bool(wrong.any()) and exactness is Exactness.SMOOTH:
        wrong &= error > _conditioned(right, at, again)
    return wrong if bool(wrong.any()) else None


def _is_near(expected: torch.Tensor, got: torch.Tensor, exactness: Exactness, position_error: float) -> bool:
    """Whether all of it is finite and no farther off than the first rule of its kind allows. So it is mostly: then
    there is no more to ask, and a large result was looked at a piece at a time, which the processor keeps at hand."""
    if expected.dtype is not got.dtype or expected.is_complex() or expected.element_size() == 1:
        return False
    if exactness is Exactness.EXACT:
        return torch.equal(expected, got)
    pieces = (each.reshape(-1).split(_PIECE) for each in (expected, got))
    for piece, other in zip(*pieces, strict=True):
        right = as_float64(piece)
        allowed = _allowed(expected.dtype, right, exactness) + position_error
        near = (right - as_float64(other)).abs_() <= allowed
        if not bool(near.all()) or not bool(right.isfinite().all()):
            return False
    return True


def _allowed(dtype: torch.dtype, right: torch.Tensor, exactness: Exactness) -> torch.Tensor:
    magnitude = torch.where(right.isfinite(), right.abs(), 0.0)
    facts = torch.finfo(dtype)
    if exactness is Exactness.ARITHMETIC:
        return _ARITHMETIC_STEPS * facts.eps * magnitude + facts.smallest_normal
    tolerance = tolerance_for(dtype)
    return tolerance.relative * magnitude + tolerance.absolute


def _conditioned(right: torch.Tensor, at: int, again: Again) -> torch.Tensor:
    """How far eager's answer moves when its operands move by their last digits: the sine of 1e9 has none left."""
    moved = torch.zeros_like(right)
    for steps, in_turn in ((2, False), (-2, False), (2, True), (-2, True)):
        other = again(functools.partial(_moved, steps=steps, in_turn=in_turn))
        if other is not None and (found := as_float64(other[at])).shape == right.shape:
            apart = _error(right, found)
            moved = torch.maximum(moved, torch.where(apart.isfinite(), 4 * apart, 0.0))
    return moved


def _moved(operand: torch.Tensor, steps: int, in_turn: bool) -> torch.Tensor:
    """Each element by so many of its last digits, all the same way or now up, now down."""
    if not (operand.is_floating_point() or operand.is_complex()) or operand.element_size() < 2:
        return operand
    way = torch.arange(operand.numel()).reshape(operand.shape) * 7 % 5 % 2 * 2 - 1 if in_turn else 1
    by = steps * torch.finfo(operand.dtype).eps
    turned = by * 1j if operand.is_complex() and in_turn else by  # across, too
    return (operand * (1 + way * turned)).to(operand.dtype)


def _widened(operand: torch.Tensor) -> torch.Tensor:
    if operand.is_complex():
        return operand.to(torch.complex128)
    return as_float64(operand) if operand.is_floating_point() else operand


def _all_widened(operand: torch.Tensor) -> torch.Tensor:
    """Integers too, of which eager makes floats itself: its cosh of an int8 is that of a float32."""
    return operand if operand.dtype is torch.bool or operand.is_complex() else as_float64(operand)


def _sizes(right: torch.Tensor, is_complex: bool) -> torch.Tensor:
    """How large each element is; of a part of a complex number, how large the number is."""
    return torch.hypot(right[..., 0], right[..., 1]).unsqueeze(-1).expand(right.shape) if is_complex else right


def _without_lost_parts(parts: torch.Tensor) -> torch.Tensor:
    """An infinite number is the same whatever its other part, and one with a NaN is none."""
    infinite, none = (each.any(-1, keepdim=True) for each in (parts.isinf(), parts.isnan()))
    return torch.where(infinite, math.inf, torch.where(none, math.nan, parts))


def _error(right: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    same = (right == given) | (right.isnan() & given.isnan())
    error = torch.where(same, 0.0, (right - given).abs())
    return torch.where(error.isnan(), math.inf, error)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(kinds[tensor.element_size()])
