"""Fourier transforms of a given length along a free axis: torch cuts or pads, as the example's size tells it.

Here the axis is padded by what may be missing and then read as far as the length goes, which is right for every size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.torch_internals import OpOverload, decomposition_of

aten = torch.ops.aten


def _fitted(x: torch.Tensor, axis: int, length: Any) -> torch.Tensor:
    """`x` with this length along the axis; as it is, where its size is known and torch need not ask."""
    size: Any = x.shape[axis]
    if not isinstance(size, torch.SymInt) or isinstance(length, torch.SymInt):
        return x
    missing = torch.sym_max(length - size, 0)
    last = F.pad(x.movedim(axis, -1), (0, missing))
    return last.index_select(-1, torch.arange(length)).movedim(-1, axis)


def _of_one_axis(op: OpOverload, *, halved: bool) -> Callable[..., Any]:
    """`halved`: the input is the half of a spectrum whose whole length is given."""

    def definition(x: torch.Tensor, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
        if n is not None:
            x = _fitted(x, dim, n // 2 + 1 if halved else n)
        return _own(op)(x, n, dim, norm)

    return definition


def _of_axes(op: OpOverload, *, halved: bool, last_two: bool) -> Callable[..., Any]:
    def definition(
        x: torch.Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
    ) -> Any:
        axes = [-2, -1] if dim is None and last_two else dim
        for i, length in enumerate(s or ()):
            axis = i - len(s or ()) if axes is None else axes[i]
            if length == -1:
                continue
            is_last = i == len(s or ()) - 1
            x = _fitted(x, axis, length // 2 + 1 if halved and is_last else length)
        return _own(op)(x, s, axes, norm)

    return definition


def _own(op: OpOverload) -> Callable[..., Any]:
    """Torch's own definition."""
    found = decomposition_of(op)
    assert found is not None, op
    return found


_HALVED = ("irfft", "hfft")
TRANSFORMS: dict[OpOverload, Callable[..., Any]] = {
    getattr(aten, f"fft_{name}").default: _of_one_axis(getattr(aten, f"fft_{name}").default, halved=name in _HALVED)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
} | {
    getattr(aten, f"fft_{name}{axes}").default: _of_axes(
        getattr(aten, f"fft_{name}{axes}").default, halved=name in _HALVED, last_two=axes == "2"
    )
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for axes in ("2", "n")
}
