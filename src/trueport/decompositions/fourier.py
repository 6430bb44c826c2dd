"""Fourier transforms: of a given length along a free axis, their frequencies, and the way back from frames.

Torch cuts or pads to the length, as the example's size tells it. Here the axis is padded by what may be missing and
then read as far as the length goes, which is right for every size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.registry import always, decomposes, holds_symbol, number_in
from trueport.torch_internals import OpOverload, decomposition_of, outside_all_modes
from trueport.torch_internals.symbolic import is_symbolic, same_number

aten = torch.ops.aten


def _fitted(x: torch.Tensor, axis: int, length: Any) -> torch.Tensor:
    """`x` with this length along the axis; as it is, where torch need not ask which of the two is longer."""
    size: Any = x.shape[axis]
    if not holds_symbol((size, length)) or same_number(size, length):
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


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _halved = _name in ("irfft", "hfft")
    _op, _op2, _opn = (getattr(aten, f"fft_{_name}{_axes}").default for _axes in ("", "2", "n"))
    decomposes(_op)(_of_one_axis(_op, halved=_halved))
    decomposes(_op2)(_of_axes(_op2, halved=_halved, last_two=True))
    decomposes(_opn)(_of_axes(_opn, halved=_halved, last_two=False))


def _spacing(function: Callable[..., torch.Tensor], places: Callable[[Any], torch.Tensor]) -> None:
    """The frequencies of a transform: a known table of a known length, which the dispatcher's kernel would not give a
    trace; otherwise so many places, each by the length."""

    @decomposes(function, when=always)
    def frequencies(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
        dtype = dtype or torch.get_default_dtype()
        n = number_in(n)
        if not is_symbolic(n):
            with outside_all_modes():
                return function(n, d, dtype=dtype)
        return torch.mul(places(n).to(dtype), 1.0 / (n * d))


def _both_signs(n: Any) -> torch.Tensor:
    at = torch.arange(n)
    return torch.where(at <= (n - 1) // 2, at, at - n)


_spacing(torch.fft.fftfreq, _both_signs)
_spacing(torch.fft.rfftfreq, lambda n: torch.arange(n // 2 + 1))


@decomposes(torch.istft, torch.Tensor.istft)
def _istft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> torch.Tensor:
    """The whole signal, of which the padding in front is cut off, and then as much as `length` says.

    At the very ends, where the windows fade, the whole is not defined; with `center` they are in the padding.
    """
    whole = torch.istft(input, n_fft, hop_length, win_length, window, False, normalized, onesided, None, return_complex)
    signal = whole[..., n_fft // 2 :] if center else whole
    missing = torch.sym_max(length - signal.shape[-1], 0)
    return F.pad(signal, (0, missing))[..., :length]
