"""The judge's own comparison of what eager gave with what the runtime gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.leaves import Leaf

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """`|actual - expected| <= absolute * max(1, largest |expected|) + relative * |expected|`."""

    relative: float
    absolute: float


BY_DTYPE = {
    torch.float64: Tolerance(1e-6, 1e-7),
    torch.float32: Tolerance(1e-3, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3),
    torch.bfloat16: Tolerance(3e-2, 1e-2),
}


def differences(expected: Sequence[Leaf], actual: Sequence[Array], tolerance: Tolerance | None = None) -> list[str]:
    """What differs, one sentence per output; an empty list means equal."""
    if len(expected) != len(actual):
        return [f"{len(actual)} outputs instead of {len(expected)}"]
    found = []
    for index, (wanted, got) in enumerate(zip(expected, actual, strict=True)):
        reason = _difference(wanted, got, tolerance)
        if reason:
            found.append(f"output {index}: {reason}")
    return found


def _difference(expected: Leaf, actual: Array, tolerance: Tolerance | None) -> str:
    if not isinstance(expected, torch.Tensor):
        return _number_difference(expected, actual)
    if expected.is_complex() and not np.iscomplexobj(actual):
        # ONNX Runtime has no complex tensors: the real view is as good as it gets.
        expected = torch.view_as_real(expected.resolve_conj())
    if tuple(expected.shape) != actual.shape:
        return f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    dtype = str(expected.dtype).removeprefix("torch.")
    if dtype != actual.dtype.name:
        return f"dtype {actual.dtype.name} instead of {dtype}"
    if not (expected.is_floating_point() or expected.is_complex()):
        wrong = int((expected.numpy() != actual).sum())
        return f"{wrong} of {expected.numel()} values differ" if wrong else ""
    return _float_difference(expected, actual, tolerance or BY_DTYPE.get(expected.dtype, BY_DTYPE[torch.float32]))


def _float_difference(expected: torch.Tensor, actual: Array, tolerance: Tolerance) -> str:
    if expected.is_complex():
        wanted: Array = expected.to(torch.complex128).resolve_conj().numpy()
        got: Array = actual.astype(np.complex128)
    else:
        wanted, got = expected.double().numpy(), actual.astype(np.float64)
    finite = np.isfinite(wanted)
    if not np.array_equal(wanted[~finite], got[~finite], equal_nan=True):
        return "NaN or infinity in other places"
    distance = np.abs(got[finite] - wanted[finite])
    if distance.size == 0:
        return ""
    size = np.abs(wanted[finite])
    allowed = tolerance.absolute * max(1.0, float(size.max())) + tolerance.relative * size
    wrong = ~(distance <= allowed)  # a NaN in `got` is not <= anything, hence wrong
    return f"{int(wrong.sum())} of {wanted.size} values differ, by {float(distance.max()):.3g}" if wrong.any() else ""


def _number_difference(expected: bool | int | float, actual: Array) -> str:
    """A Python number may arrive as a 0-d tensor or as one element, in any dtype of its kind."""
    if actual.size != 1:
        return f"shape {list(actual.shape)} instead of one number"
    got = actual.reshape(()).item()
    kinds = {bool: "b", int: "iu", float: "f"}[type(expected)]
    if actual.dtype.kind not in kinds:
        return f"{actual.dtype.name} instead of a Python {type(expected).__name__}"
    return "" if np.isclose(float(got), float(expected), rtol=1e-5, equal_nan=True) else f"{got} instead of {expected}"
