"""Torch functions that take only plain numbers where a model gives them sizes, written with functions that do not.

`torch.linspace(0, 1, steps=x.shape[1])` needs a plain int in its schema: torch would read the free size as a number and
freeze it. The stand-ins compute the same with open sizes; they are used only where a symbolic number is given.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from trueport.capture.decompositions.packed import pad_packed
from trueport.load.values import SYMBOLIC_NUMBERS as Symbolic
from trueport.torch_internals import (
    FakeTensor,
    FunctionalTensor,
    outside_all_modes,
    padded_sequence_of_packed,
)

_STAND_INS: dict[Callable[..., Any], Callable[..., Any]] = {}
_FOR_FREE_SIZES: set[Callable[..., Any]] = set()
"""Functions that read the sizes of their tensors as plain numbers, and need their stand-in for those alone."""
_ALWAYS: set[Callable[..., Any]] = set()
"""Functions that need their stand-in whatever they are given."""
_OF_TENSORS: set[Callable[..., Any]] = set()
"""Stand-ins that make something of tensors where others take numbers."""


def stand_in_for(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """What to call instead of `function`, where it would freeze one of its arguments."""
    replacement = _STAND_INS.get(function)
    if replacement is None:
        return None
    given = (*args, *kwargs.values())
    if (
        function in _ALWAYS
        or holds_symbol(given)
        or (replacement in _OF_TENSORS and isinstance(given[0], (list, tuple)) and _holds_traced_tensor(given[0]))
        or (function in _FOR_FREE_SIZES and holds_symbol([_sizes(each) for each in given]))
    ):
        return replacement
    return None


def with_numbers(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Tensors of one value as the numbers that they hold, where a stand-in takes numbers: `torch.linspace(0, 1, n)`."""
    replacement = _STAND_INS.get(function)
    if (
        replacement is None
        or replacement in _OF_TENSORS
        or not any(map(_is_or_holds_single, (*args, *kwargs.values())))
    ):
        return args, kwargs
    parameters = inspect.signature(replacement).parameters
    of_numbers = [p.name for p in parameters.values() if p.annotation not in ("torch.Tensor", torch.Tensor)]
    named = dict(zip(parameters, args, strict=False))
    made = tuple(_number(value) if name in of_numbers else value for name, value in named.items())
    return (*made, *args[len(made) :]), {
        name: _number(value) if name in of_numbers else value for name, value in kwargs.items()
    }


def _is_or_holds_single(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_is_or_holds_single, value))
    return isinstance(value, torch.Tensor) and value.dim() == 0


def _number(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_number, value))
    return value.item() if _is_or_holds_single(value) else value


def _holds_traced_tensor(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(map(_holds_traced_tensor, data))
    return isinstance(data, (FakeTensor, FunctionalTensor))


def _sizes(given: Any) -> tuple[Any, ...]:
    return tuple(given.shape) if isinstance(given, torch.Tensor) else ()


def holds_symbol(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(holds_symbol(d) for d in data)
    return isinstance(data, Symbolic)


def stands_in_for(
    *functions: Callable[..., Any], reads_sizes: bool = False, always: bool = False, of_tensors: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a stand-in; `reads_sizes` where a tensor of free sizes is enough to need it, `always` where it is
    needed in any case, `of_tensors` where tensors of one value are no numbers to it."""

    def register(replacement: Callable[..., Any]) -> Callable[..., Any]:
        if of_tensors:
            _OF_TENSORS.add(replacement)
        for function in functions:
            _STAND_INS[function] = replacement
            if reads_sizes:
                _FOR_FREE_SIZES.add(function)
            if always:
                _ALWAYS.add(function)
        return replacement

    return register


@stands_in_for(torch.tensor, torch.as_tensor, torch.scalar_tensor, of_tensors=True)
def tensor_of(data: Any, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> torch.Tensor:
    """A nested list that holds traced numbers or tensors, stacked."""
    if dtype is None:
        dtype = functools.reduce(torch.promote_types, _dtypes(data))
    if isinstance(data, (list, tuple)):
        return torch.stack([tensor_of(d, dtype=dtype) for d in data])
    if isinstance(data, torch.Tensor):
        return data.to(dtype)
    if isinstance(data, torch.SymBool):
        return torch.full((), torch.sym_ite(data, 1, 0), dtype=torch.int64).to(dtype)
    return torch.full((), data, dtype=dtype)


def _dtypes(data: Any) -> list[torch.dtype]:
    """Of each item: a tensor keeps its own, and numbers get the usual one."""
    if isinstance(data, (list, tuple)):
        return [dtype for d in data for dtype in _dtypes(d)]
    if isinstance(data, torch.Tensor):
        return [data.dtype]
    if isinstance(data, (bool, torch.SymBool)):
        return [torch.bool]
    return [torch.int64 if isinstance(data, (int, torch.SymInt)) else torch.get_default_dtype()]


@stands_in_for(torch.arange, always=True, of_tensors=True)
def _arange(*bounds: Any, step: Any = None, **options: Any) -> Any:
    """With a step that is known only when the model runs: torch asks for its sign."""
    if len(bounds) == 3 and step is None:
        *bounds, step = bounds  # type: ignore[assignment]
    numbers = [_number(each) for each in (*bounds, step)] if _is_or_holds_single(step) else [*bounds, step]
    if not isinstance(numbers[-1], torch.SymInt) or not all(isinstance(n, (int, torch.SymInt)) for n in numbers):
        return NotImplemented
    start, end, step = numbers if len(numbers) == 3 else (0, *numbers)
    count = torch.sym_max(-((start - end) // step), 0)
    return (torch.arange(count) * step + start).to(options.get("dtype") or torch.int64)


@stands_in_for(torch.linspace)
def _linspace(start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """As torch's kernel: from the start in the first half, from the end in the second, so that both ends are exact."""
    dtype = dtype or torch.get_default_dtype()
    wide = torch.promote_types(dtype, torch.float32) if dtype.is_floating_point else torch.float64
    index = torch.arange(steps)
    start, end = torch.full((), start, dtype=wide), torch.full((), end, dtype=wide)
    gaps = torch.full((), steps - 1, dtype=wide).clamp(min=1)
    step = (end - start) / gaps
    halfway = torch.full((), steps // 2, dtype=torch.int64)
    from_start = start + step * index.to(wide)
    from_end = end - step * (torch.full((), steps - 1, dtype=torch.int64) - index).to(wide)
    several = torch.full((), steps, dtype=torch.int64) > 1
    return torch.where((index < halfway) | ~several, from_start, from_end).to(dtype)


@stands_in_for(torch.logspace)
def _logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    exponents = _linspace(start, end, steps, dtype=dtype if dtype.is_floating_point else torch.float64)
    return torch.pow(torch.full((), base, dtype=exponents.dtype), exponents).to(dtype)


@stands_in_for(torch.hann_window)
def _hann_window(
    window_length: Any, periodic: bool = True, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return _cosine_window(window_length, periodic, 0.5, 0.5, dtype)


@stands_in_for(torch.hamming_window)
def _hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, **_: Any
) -> torch.Tensor:
    return _cosine_window(window_length, periodic, alpha, beta, dtype)


def _cosine_window(length: Any, periodic: bool, alpha: float, beta: float, dtype: torch.dtype | None) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    period = torch.full((), length if periodic else length - 1, dtype=dtype).clamp(min=1)
    turns = torch.arange(length).to(dtype) * (2 * torch.pi / period)
    single = torch.full((), length, dtype=torch.int64) == 1
    return torch.where(single, torch.ones((), dtype=dtype), alpha - beta * torch.cos(turns))


@stands_in_for(torch.kaiser_window)
def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    middle = torch.full((), window_length if periodic else window_length - 1, dtype=dtype).clamp(min=1) / 2
    apart = (torch.arange(window_length).to(dtype) - middle) / middle
    shape = torch.i0(beta * torch.sqrt((1 - apart * apart).clamp(min=0)))
    window = shape / torch.i0(torch.full((), beta, dtype=dtype))
    single = torch.full((), window_length, dtype=torch.int64) == 1
    return torch.where(single, torch.ones((), dtype=dtype), window)


def _spacing(function: Callable[..., torch.Tensor], places: Callable[[Any], torch.Tensor]) -> None:
    """The frequencies of a transform: a known table of a known length, which the dispatcher's kernel would not give a
    trace; otherwise so many places, each by the length."""

    @stands_in_for(function, always=True)
    def frequencies(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
        dtype = dtype or torch.get_default_dtype()
        if isinstance(n, int):
            with outside_all_modes():
                return function(n, d, dtype=dtype)
        return torch.mul(places(n).to(dtype), 1.0 / (n * d))


def _both_signs(n: Any) -> torch.Tensor:
    at = torch.arange(n)
    return torch.where(at <= (n - 1) // 2, at, at - n)


_spacing(torch.fft.fftfreq, _both_signs)
_spacing(torch.fft.rfftfreq, lambda n: torch.arange(n // 2 + 1))


@stands_in_for(torch.istft, torch.Tensor.istft)
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


@stands_in_for(F.pad)
def _pad(input: torch.Tensor, pad: Any, mode: str = "constant", value: Any = None) -> torch.Tensor:
    """Padding with a traced number: zeros, and the number where nothing of the input is."""
    if mode != "constant" or not isinstance(value, Symbolic):
        return F.pad(input, pad, mode, value)
    inside = F.pad(torch.ones_like(input, dtype=torch.bool), pad)
    return torch.where(inside, F.pad(input, pad), tensor_of(value, dtype=input.dtype))


@stands_in_for(F.linear_cross_entropy, always=True, of_tensors=True)
def _linear_cross_entropy(*args: Any, options: Any = None, **named: Any) -> torch.Tensor:
    """In one go: the pieces in which torch computes it are for the gradient's sake."""
    return F.linear_cross_entropy(*args, **named)


@stands_in_for(F.one_hot)
def _one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> torch.Tensor:
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


stands_in_for(padded_sequence_of_packed(), of_tensors=True)(pad_packed)


@stands_in_for(torch.tril_indices)
def _tril_indices(row: Any, col: Any, offset: int = 0, *, dtype: torch.dtype = torch.int64, **_: Any) -> torch.Tensor:
    below = torch.arange(col) - torch.arange(row).unsqueeze(1) <= offset
    return below.nonzero().t().to(dtype)


@stands_in_for(torch.triu_indices)
def _triu_indices(row: Any, col: Any, offset: int = 0, *, dtype: torch.dtype = torch.int64, **_: Any) -> torch.Tensor:
    above = torch.arange(col) - torch.arange(row).unsqueeze(1) >= offset
    return above.nonzero().t().to(dtype)
