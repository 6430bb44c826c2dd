"""Operands at the edges of each dtype, and a comparison with eager that excuses nothing but rounding.

`edges(dtype)` are the numbers where translations and kernels go wrong: the lowest and the highest, -1, 0, -0.0, powers
of two and their neighbours, halves, subnormals, NaN and infinities. `pairs(dtype)` are all pairs of them; of 8-bit
integers all pairs there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from tests.lower.through_onnx import _as_torch, _leaves, model_of, run

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LENGTHS = (0, 1, 2, 65, 4097)
_POWERS = (1, 2, 7, 8, 15, 16, 23, 24, 31, 32, 33, 52, 53, 62, 63)


def edges(dtype: torch.dtype) -> torch.Tensor:
    """The numbers of a dtype that tell right from nearly right."""
    if dtype is torch.bool:
        return torch.tensor([False, True])
    around = [sign * 2**power + step for power in _POWERS for sign in (1, -1) for step in (-1, 0, 1)]
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        if info.bits == 8:
            return torch.arange(info.min, info.max + 1, dtype=dtype)
        numbers = {info.min, info.min + 1, info.max - 1, info.max, *range(-8, 9), *around}
        drawn = torch.randint(info.min, info.max, (16,), generator=_generator(), dtype=torch.int64).tolist()
        return torch.tensor(sorted(n for n in {*numbers, *drawn} if info.min <= n <= info.max), dtype=dtype)
    limits = torch.finfo(dtype)
    plain = [*range(-4, 5), 0.5, 1.5, 2.5, 3.5, 0.1, 1 / 3, 6.5, 20.5, 100.3, *(float(n) for n in around)]
    small = [limits.tiny, limits.smallest_normal / 4, limits.eps, 1 - limits.eps, 1 + limits.eps, limits.max, 1e-3]
    numbers = [*plain, *(-n for n in plain), *small, *(-n for n in small), -0.0]
    finite = [n for n in dict.fromkeys(numbers) if abs(n) <= limits.max]
    return torch.tensor([*finite, -0.0, float("nan"), float("inf"), float("-inf")], dtype=dtype)


def pairs(dtype: torch.dtype, other: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Every edge with every other."""
    first, second = edges(dtype), edges(other or dtype)
    left, right = torch.meshgrid(first, second, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


def of_length(operands: tuple[torch.Tensor, ...], length: int) -> tuple[torch.Tensor, ...]:
    """So many of them: kernels take other paths for few elements than for many."""
    chosen = torch.randint(0, len(operands[0]), (length,), generator=_generator())
    return tuple(x[chosen] for x in operands)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def check_edges(
    function: Callable[..., Any],
    *operands: torch.Tensor,
    lengths: tuple[int, ...] = (),
    rtol: float | None = None,
    atol: float | None = None,
    signed_zeros: bool = True,
) -> None:
    """Eager and ONNX Runtime agree on these operands, and on so many drawn of them.

    Integers and truth exactly; of floats NaN, infinities and the signs of zeros exactly, other numbers up to rounding.
    """
    free = {i: {0: "n"} for i in range(len(operands))}
    model = model_of(function, operands, free)
    for given in (operands, *(of_length(operands, length) for length in lengths)):
        with torch.no_grad():
            wanted = _leaves(function(*[x.clone() for x in given]))
        for ours, theirs in zip(run(model, given), wanted, strict=True):
            compare(_as_torch(ours), theirs, given, rtol, atol, signed_zeros)


def compare(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    given: tuple[torch.Tensor, ...] = (),
    rtol: float | None = None,
    atol: float | None = None,
    signed_zeros: bool = True,
) -> None:
    assert ours.dtype == theirs.dtype, f"dtype {ours.dtype}, eager gives {theirs.dtype}"
    assert ours.shape == theirs.shape, f"shape {tuple(ours.shape)}, eager gives {tuple(theirs.shape)}"
    if theirs.dtype.is_floating_point:
        near = torch.isclose(ours.double(), theirs.double(), *_tolerances(theirs.dtype, rtol, atol), equal_nan=True)
        if signed_zeros:
            near &= (ours != 0) | (theirs != 0) | (torch.signbit(ours) == torch.signbit(theirs))
    else:
        near = ours == theirs
    wrong = (~near).nonzero()
    shown = [
        f"{[x[tuple(i)].item() if x.shape == theirs.shape else '' for x in given]}: "
        f"eager {theirs[tuple(i)].item()!r}, ONNX {ours[tuple(i)].item()!r}"
        for i in itertools.islice(wrong, 6)
    ]
    assert not len(wrong), f"{len(wrong)} of {near.numel()} differ: " + "; ".join(shown)


def _tolerances(dtype: torch.dtype, rtol: float | None, atol: float | None) -> tuple[float, float]:
    limits = torch.finfo(dtype)
    return (rtol if rtol is not None else 16 * limits.eps, atol if atol is not None else float(limits.tiny))
