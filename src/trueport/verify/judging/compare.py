"""Is it what eager gave? Shape and dtype exactly, integers exactly, floats as far as their dtype goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import torch

from trueport.verify.runtime.tensors import RuntimeValue, TensorData, as_pairs, dtype_name, to_torch

Number = bool | int | float
Expected = torch.Tensor | Number | Sequence[torch.Tensor]
"""What eager returned in one place: a tensor, a Python number, or a list of tensors."""
Slack = torch.Tensor | Sequence[torch.Tensor | None]
"""What is allowed each element besides: of a tensor, or of each tensor of a list."""

# Elements this many times larger than the median do not set the scale of a tensor: a mask filled with
# finfo.min would otherwise excuse any error in the elements beside it.
_OUTLIER = 1e3


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a float may be off: a share of its own magnitude, a share of the tensor's scale, and an absolute floor.

    The share of the scale is for cancellation: 1000.1 - 1000 is exact to seven digits of 1000, not of 0.1.
    """

    relative: float
    of_scale: float
    absolute: float

    def allowed(self, expected: torch.Tensor) -> torch.Tensor:
        """The largest acceptable error of each element (float64 in, float64 out)."""
        magnitude = torch.where(expected.isfinite(), expected.abs(), 0.0)
        return self.relative * magnitude + (self.of_scale * scale_of(magnitude) + self.absolute)

    def __str__(self) -> str:
        return f"{self.relative:g} of the value + {self.of_scale:g} of the tensor's scale + {self.absolute:g}"


_FLOATS: dict[torch.dtype, Tolerance] = {
    torch.float64: Tolerance(1e-10, 1e-10, 1e-13),
    torch.float32: Tolerance(2e-5, 1e-5, 1e-6),
    torch.float16: Tolerance(1e-2, 5e-3, 1e-3),
    torch.bfloat16: Tolerance(4e-2, 2e-2, 8e-3),
}
_COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_EXACT = Tolerance(0.0, 0.0, 0.0)


def tolerance_for(
    dtype: torch.dtype,
    working: Sequence[torch.dtype] = (),
    rtol: float | None = None,
    atol: float | None = None,
) -> Tolerance:
    """The tolerance of a dtype, or of the coarsest dtype that the model computes in, where that is coarser.

    `rtol` and `atol` are the user's own and mean what they mean in `torch.allclose`.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _EXACT
    candidates = [_of_float(each) for each in (dtype, *working) if each.is_floating_point or each.is_complex]
    chosen = max(candidates, key=lambda tolerance: tolerance.relative)
    if rtol is not None:
        chosen = replace(chosen, relative=rtol)
    if atol is not None:
        chosen = replace(chosen, of_scale=0.0, absolute=atol)
    return chosen


def _of_float(dtype: torch.dtype) -> Tolerance:
    dtype = _COMPLEX.get(dtype, dtype)
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    # The float8 kinds: one step either way, since a tie may round to either neighbour.
    facts = torch.finfo(dtype)
    return Tolerance(facts.eps, 0.0, facts.smallest_normal)


class DifferenceKind(Enum):
    STRUCTURE = "structure"
    SHAPE = "shape"
    DTYPE = "dtype"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class Difference:
    """How two values differ. For values: the worst element, what it is on either side, and how many are wrong."""

    kind: DifferenceKind
    expected: str
    got: str
    index: tuple[int, ...] = ()
    item: int | None = None
    """Which item of a sequence it is."""
    error: float = 0.0
    allowed: float = 0.0
    wrong: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one comparison; `worst` is the largest error among the floats, also where all is well, and
    `allowed` what that element may be off."""

    difference: Difference | None
    worst: float = 0.0
    allowed: float = 0.0


def compare(expected: Expected, got: RuntimeValue, tolerance: Tolerance | None = None) -> Difference | None:
    """None where the two agree. Without a tolerance, that of the expected dtype."""
    return judge(expected, got, tolerance).difference


def judge(
    expected: Expected, got: RuntimeValue, tolerance: Tolerance | None = None, slack: Slack | None = None
) -> Judgement:
    """`compare`, with the size of the largest error. `slack` is allowed each element of a tensor besides."""
    if isinstance(expected, bool | int | float):
        return _judge_number(expected, got, tolerance)
    if isinstance(expected, torch.Tensor):
        if isinstance(got, tuple):
            return Judgement(Difference(DifferenceKind.STRUCTURE, "a tensor", f"a sequence of {len(got)} tensors"))
        return _judge_tensor(expected, got, tolerance, slack if isinstance(slack, torch.Tensor) else None)
    if not isinstance(got, tuple) or len(got) != len(expected):
        found = f"a sequence of {len(got)}" if isinstance(got, tuple) else "a tensor"
        return Judgement(Difference(DifferenceKind.STRUCTURE, f"a sequence of {len(expected)}", found))
    slacks = [None] * len(expected) if slack is None or isinstance(slack, torch.Tensor) else slack
    pairs = zip(expected, got, slacks, strict=True)
    return of_items([_judge_tensor(one, other, tolerance, besides) for one, other, besides in pairs])


def of_items(verdicts: Sequence[Judgement]) -> Judgement:
    """What is to be said of a sequence: the first item that differs, and the worst of all."""
    differing = ((at, verdict.difference) for at, verdict in enumerate(verdicts) if verdict.difference is not None)
    first = next((replace(difference, item=at) for at, difference in differing), None)
    worst = max(verdicts, key=lambda verdict: verdict.worst, default=Judgement(None))
    return Judgement(first, worst.worst, worst.allowed)


def _judge_number(expected: Number, got: RuntimeValue, tolerance: Tolerance | None) -> Judgement:
    """A Python number is a 0-d tensor in ONNX; a float has no precision of its own and takes that of the model."""
    if isinstance(expected, bool):
        dtype = torch.bool
    elif isinstance(expected, int):
        dtype = torch.int64
    else:
        dtype = torch.float32 if isinstance(got, TensorData) and got.dtype == "float32" else torch.float64
    tensor = torch.tensor(expected, dtype=dtype)
    if tolerance is not None:
        tolerance = max(tolerance, tolerance_for(dtype), key=lambda each: each.relative)
    return judge(tensor, got, tolerance)


def _judge_tensor(
    expected: torch.Tensor, got: TensorData, tolerance: Tolerance | None, slack: torch.Tensor | None = None
) -> Judgement:
    carried = expected if got.dtype.startswith("complex") else as_pairs(expected)
    if tuple(carried.shape) != got.shape:
        return Judgement(Difference(DifferenceKind.SHAPE, str(list(carried.shape)), str(list(got.shape))))
    if dtype_name(carried.dtype) != got.dtype:
        return Judgement(Difference(DifferenceKind.DTYPE, dtype_name(carried.dtype), got.dtype))
    if expected.numel() == 0:
        return Judgement(None)
    ours = expected.detach().cpu().resolve_conj().resolve_neg()
    theirs = to_torch(got)
    if ours.is_complex() and not theirs.is_complex():
        theirs = torch.view_as_complex(theirs)
    if not (ours.is_floating_point() or ours.is_complex()):
        return _judge_exactly(ours, theirs)
    return _judge_floats(ours, theirs, tolerance or tolerance_for(ours.dtype), slack)


def _judge_exactly(ours: torch.Tensor, theirs: torch.Tensor) -> Judgement:
    # Bit patterns, because torch compares only some of the unsigned integers.
    size = ours.element_size()
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    differs = ours.contiguous().view(bits) != theirs.contiguous().view(bits)
    wrong = int(differs.sum())
    if not wrong:
        return Judgement(None)
    index = _index(int(differs.reshape(-1).to(torch.uint8).argmax()), tuple(ours.shape))
    one, other = ours[index].item(), theirs[index].item()
    difference = Difference(
        DifferenceKind.VALUES,
        str(one),
        str(other),
        index,
        None,
        abs(float(one) - float(other)),
        0.0,
        wrong,
        ours.numel(),
    )
    return Judgement(difference)


def _judge_floats(
    ours: torch.Tensor, theirs: torch.Tensor, tolerance: Tolerance, slack: torch.Tensor | None
) -> Judgement:
    shape = tuple(ours.shape)
    precise, given = as_float64(ours), as_float64(theirs)
    if slack is None and not ours.is_complex() and (agreed := _agreed(precise, given, tolerance)) is not None:
        return agreed
    # Either part of a complex number is as exact as the number is large: z * z.conj() rounds to an imaginary part.
    size = ours.abs().double().unsqueeze(-1).expand(precise.shape) if ours.is_complex() else precise
    allowed = tolerance.allowed(size)
    if slack is not None:
        allowed = allowed + slack
    both_nan = precise.isnan() & given.isnan()
    same = both_nan | (precise == given)
    if ours.is_complex():  # a number with an infinite part is infinite, whatever is said of the other part
        same |= (precise.isinf().any(-1) & given.isinf().any(-1)).unsqueeze(-1)
    error = torch.where(same, 0.0, (precise - given).abs())
    # A NaN on one side only, or an infinity against anything else, is off by more than can be measured.
    error = torch.where(error.isnan(), math.inf, error)
    excess = torch.where(error > allowed, error / allowed.clamp(min=torch.finfo(torch.float64).tiny), 0.0)
    wrong = int((excess > 0).sum())
    if not wrong:
        worst = int(error.reshape(-1).argmax())
        return Judgement(None, float(error.reshape(-1)[worst]), float(allowed.expand(error.shape).reshape(-1)[worst]))
    at = int(excess.reshape(-1).argmax())
    per_element = 2 if ours.is_complex() else 1
    index = _index(at // per_element, shape)
    difference = Difference(
        DifferenceKind.VALUES,
        _written(ours[index]),
        _written(theirs[index]),
        index,
        None,
        float(error.reshape(-1)[at]),
        float(allowed.reshape(-1)[at]),
        wrong,
        ours.numel(),
    )
    return Judgement(difference, float(error.max()))


def _agreed(precise: torch.Tensor, given: torch.Tensor, tolerance: Tolerance) -> Judgement | None:
    """The answer to nearly every question, in few steps: all of it is finite and close enough. None for any other.

    By numpy, whose steps on few elements take half as long as torch's.
    """
    ours, theirs = precise.numpy().reshape(-1), given.numpy().reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(ours - theirs)
    at = int(error.argmax())
    worst = float(error[at])
    if not math.isfinite(worst):
        return None
    magnitude = np.abs(ours)
    everywhere = tolerance.of_scale * _scale(magnitude) + tolerance.absolute
    if worst > everywhere and bool((error > tolerance.relative * magnitude + everywhere).any()):
        return None
    return Judgement(None, worst, tolerance.relative * float(magnitude[at]) + everywhere)


def as_float64(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.element_size() == 1:
        tensor = tensor.float()  # torch widens the float8 kinds one step at a time
    return tensor.double()


def scale_of(tensor: torch.Tensor) -> float:
    """Of a tensor in float64."""
    return _scale(torch.where(tensor.isfinite(), tensor.abs(), 0.0).detach().numpy().reshape(-1))


def _scale(magnitude: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The largest magnitude that is not an outlier. Zeros (a ReLU makes many) do not count towards the median."""
    present = magnitude[magnitude > 0]
    if not present.size:
        return 0.0
    middle = (present.size - 1) // 2
    median = np.partition(present, middle)[middle]
    return float(present[present <= _OUTLIER * median].max())


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _written(element: torch.Tensor) -> str:
    value = element.item()
    return f"{value:.7g}" if isinstance(value, float) else str(value)
