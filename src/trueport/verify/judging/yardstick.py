"""How far eager itself is from the truth: the same model in float64, asked only after a difference.

A deep model, or a sum over many elements, is rounded more often than any fixed tolerance can know, and two runtimes
round differently. Where the difference is no larger than eager's own error, it says nothing of the export.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from trueport.verify.judging.compare import Expected, Judgement, Slack, Tolerance, as_float64, judge, scale_of
from trueport.verify.runtime.tensors import RuntimeValue

_TIMES = 2.0
"""The worst of eager's errors, and as much again for the runtime's own, which are elsewhere."""
_AT_MOST = 2e-4
"""Of the tensor's scale. An element that is further off has jumped (`floor`), and says nothing of the others. So no
fault of one in a thousand is taken for rounding."""
_COARSE = 1e-3
"""Where a dtype is known to no more digits than this, the runtime computes it in float32."""
_FEW = 0.01
"""How many of the elements may jump. Where more do, eager is no yardstick."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """The verdicts beside float64; what each output was allowed for that (0 where nothing was needed); an excuse."""

    verdicts: tuple[Judgement, ...]
    allowed: tuple[float, ...]
    excuse: str = ""


def rejudged(
    expected: Sequence[Expected],
    precise: Sequence[Expected],
    got: Sequence[RuntimeValue],
    tolerances: Sequence[Tolerance],
    strict: Sequence[bool],
) -> Rejudged:
    """Judge again, with eager's own error allowed. `strict` outputs have a tolerance of the user's own, which holds."""
    errors = [
        None if firm else _own_error(one, truth) for one, truth, firm in zip(expected, precise, strict, strict=True)
    ]
    verdicts = tuple(judge(*each) for each in zip(expected, got, tolerances, errors, strict=True))
    allowed = tuple(
        _largest(error) if error is not None and verdict.difference is None else 0.0
        for error, verdict in zip(errors, verdicts, strict=True)
    )
    wrong = [at for at, verdict in enumerate(verdicts) if verdict.difference is not None]
    coarse = max((tolerance.relative for tolerance in tolerances), default=0.0) > _COARSE
    if wrong and all(
        (coarse or _overflows(expected[at])) and _agrees(precise[at], expected[at], got[at], tolerances[at])
        for at in wrong
    ):
        return Rejudged(verdicts, allowed, "eager itself is off: in float64 the model gives what the runtime gives")
    return Rejudged(verdicts, allowed)


def _largest(error: Slack) -> float:
    parts = [error] if isinstance(error, torch.Tensor) else [part for part in error if part is not None]
    return max((float(part.max()) for part in parts), default=0.0)


def _own_error(expected: Expected, precise: Expected) -> Slack | None:
    """What to allow each element (float64) for eager's own rounding; None where nothing can be measured."""
    if isinstance(expected, Sequence) and isinstance(precise, Sequence):
        if len(expected) != len(precise):
            return None
        return [_error_of(one, truth) for one, truth in zip(expected, precise, strict=True)]
    return _error_of(expected, precise)


def _error_of(expected: object, precise: object) -> torch.Tensor | None:
    if not (isinstance(expected, torch.Tensor) and isinstance(precise, torch.Tensor)):
        return None
    if expected.shape != precise.shape or not (expected.is_floating_point() or expected.is_complex()):
        return None
    given, truth = as_float64(expected.detach().cpu()), as_float64(precise.detach().cpu())
    if given.shape != truth.shape or not given.numel():
        return None
    error = torch.where(given.isfinite() & truth.isfinite(), (given - truth).abs(), 0.0)
    small = error <= _AT_MOST * scale_of(truth)
    if float((~small).double().mean()) > _FEW:
        return None
    return error + _TIMES * float(error[small].max())


def _overflows(expected: Expected) -> bool:
    """Whether eager itself got stuck at an infinity, which float64 has room for."""
    parts = expected if isinstance(expected, Sequence) else [expected]
    return any(isinstance(part, torch.Tensor) and not bool(part.isfinite().all()) for part in parts)


def _agrees(precise: Expected, expected: Expected, got: RuntimeValue, tolerance: Tolerance) -> bool:
    """Whether the runtime gives what float64 gives, in the dtype of eager's own answer."""
    if isinstance(precise, Sequence) and isinstance(expected, Sequence):
        same = len(precise) == len(expected)
        return same and judge(list(map(_in_dtype_of, precise, expected)), got, tolerance).difference is None
    if not (isinstance(precise, torch.Tensor) and isinstance(expected, torch.Tensor)):
        return False
    return judge(_in_dtype_of(precise, expected), got, tolerance).difference is None


def _in_dtype_of(precise: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return precise.to(expected.dtype)
