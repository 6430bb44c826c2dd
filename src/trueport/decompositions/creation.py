"""Tensors made of numbers: `torch.tensor`, ranges, windows, indices of triangles.

`torch.linspace(0, 1, steps=x.shape[1])` needs a plain int in its schema: torch would read the free size as a number and
freeze it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from trueport.decompositions.arguments import DTYPES, flat
from trueport.decompositions.registry import (
    always,
    decomposes,
    holds_symbol,
    is_or_holds_single,
    number_in,
)
from trueport.torch_internals import FakeTensor, FunctionalTensor, OpOverload, outside_all_modes
from trueport.torch_internals.symbolic import counted, is_integer, number_kind

aten = torch.ops.aten


@decomposes(torch.tensor, torch.as_tensor, torch.scalar_tensor, when=always)
def _of_traced_items(data: Any, **options: Any) -> Any:
    """Torch reads the items of a list, and a number, in C++."""
    is_list = isinstance(data, (list, tuple))
    of_tensors = is_list and any(isinstance(each, (FakeTensor, FunctionalTensor)) for each in flat(data))
    return tensor_of(data, **options) if of_tensors or holds_symbol(data) else NotImplemented


def tensor_of(data: Any, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> torch.Tensor:
    """A nested list that holds traced numbers or tensors, stacked."""
    if dtype is None:
        dtype = functools.reduce(torch.promote_types, map(_dtype, flat(data)))
    if isinstance(data, (list, tuple)):
        return torch.stack([tensor_of(d, dtype=dtype) for d in data])
    if isinstance(data, torch.Tensor):
        return data.to(dtype)
    if isinstance(data, torch.SymBool):
        return torch.full((), counted(data), dtype=torch.int64).to(dtype)
    return torch.full((), data, dtype=dtype)


def _dtype(item: Any) -> torch.dtype:
    """A tensor keeps its own, and numbers get the usual one."""
    if isinstance(item, torch.Tensor):
        return item.dtype
    kind = number_kind(item)
    return torch.get_default_dtype() if kind is float or kind is None else DTYPES[kind]


@decomposes(torch.arange, when=always)
def _arange(*bounds: Any, step: Any = None, **options: Any) -> Any:
    """With a step that is known only when the model runs: torch asks for its sign."""
    if len(bounds) == 3 and step is None:
        *bounds, step = bounds  # type: ignore[assignment]
    numbers = [number_in(each) for each in (*bounds, step)] if is_or_holds_single(step) else [*bounds, step]
    if not isinstance(numbers[-1], torch.SymInt) or not all(map(is_integer, numbers)):
        return NotImplemented
    start, end, step = numbers if len(numbers) == 3 else (0, *numbers)
    count = torch.sym_max(-((start - end) // step), 0)
    return (torch.arange(count) * step + start).to(options.get("dtype") or torch.int64)


@decomposes(torch.linspace)
def _linspace(start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """As torch's kernel: from the start in the first half, from the end in the second, so that both ends are exact."""
    dtype = dtype or torch.get_default_dtype()
    wide = torch.promote_types(dtype, torch.float32) if dtype.is_floating_point else torch.float64
    index = torch.arange(steps)
    exact = wide if dtype.is_complex else dtype  # of integers, what is behind the point is cut off first
    start, end = (torch.full((), each, dtype=wide).to(exact).to(wide) for each in (start, end))
    gaps = torch.full((), steps - 1, dtype=wide).clamp(min=1)
    step = (end - start) / gaps
    halfway = torch.full((), steps // 2, dtype=torch.int64)
    from_start = start + step * index.to(wide)
    from_end = end - step * (torch.full((), steps - 1, dtype=torch.int64) - index).to(wide)
    several = torch.full((), steps, dtype=torch.int64) > 1
    return torch.where((index < halfway) | ~several, from_start, from_end).to(dtype)


@decomposes(torch.logspace)
def _logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    exponents = _linspace(start, end, steps, dtype=dtype if dtype.is_floating_point else torch.float64)
    return torch.pow(torch.full((), base, dtype=exponents.dtype), exponents).to(dtype)


def _window(shape: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A window function, by its shape over the shares 0 to 1 of a period; `torch.hann_window` of `_hann_window`.

    A known length gives a known table, with every bit as eager has it.
    """
    name = shape.__name__.removeprefix("_")
    function, packet = getattr(torch, name), getattr(aten, name)
    forms = [getattr(packet, form) for form in packet.overloads() if not form.endswith("out")]

    @decomposes(function, *forms)
    def window(length: Any, periodic: bool = True, *settings: Any, **options: Any) -> torch.Tensor:
        dtype = options.get("dtype") or torch.get_default_dtype()
        named = {name: options[name] for name in ("alpha", "beta") if name in options}
        if not holds_symbol((length, *settings, *named.values())):
            return _known(lambda: function(length, periodic, *settings, **named, dtype=dtype))
        period = torch.full((), length if periodic else length - 1, dtype=dtype).clamp(min=1)
        made = shape(torch.arange(length).to(dtype) / period, *settings, **named)
        single = torch.full((), length, dtype=torch.int64) == 1
        return torch.where(single, torch.ones((), dtype=dtype), made)

    return shape


def _known(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What eager makes now is a constant of the graph, and the trace's own to write to."""
    with outside_all_modes():
        made = make()
    return aten.lift_fresh.default(made)  # type: ignore[no-any-return]


@_window
def _hann_window(share: torch.Tensor) -> torch.Tensor:
    return _hamming_window(share, 0.5, 0.5)


@_window
def _hamming_window(share: torch.Tensor, alpha: float = 0.54, beta: float = 0.46) -> torch.Tensor:
    return alpha - beta * torch.cos(share * (2 * torch.pi))


@_window
def _blackman_window(share: torch.Tensor) -> torch.Tensor:
    return 0.42 - 0.5 * torch.cos(share * (2 * torch.pi)) + 0.08 * torch.cos(share * (4 * torch.pi))


@_window
def _bartlett_window(share: torch.Tensor) -> torch.Tensor:
    return 1 - (2 * share - 1).abs()


@_window
def _kaiser_window(share: torch.Tensor, beta: float = 12.0) -> torch.Tensor:
    apart = 2 * share - 1
    curve = torch.i0(beta * torch.sqrt((1 - apart * apart).clamp(min=0)))
    return curve / torch.i0(torch.full((), beta, dtype=share.dtype))


def _triangle(function: Callable[..., torch.Tensor], op: OpOverload, inside: Callable[..., torch.Tensor]) -> None:
    """Known numbers give a known table; torch's formula goes through square roots, which an empty one divides by."""

    @decomposes(function, op)
    def indices(row: Any, col: Any, offset: int = 0, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
        if not holds_symbol((row, col)):
            return _known(lambda: function(row, col, offset, dtype=dtype or torch.int64))
        apart = torch.arange(col) - torch.arange(row).unsqueeze(1)
        return inside(apart, offset).nonzero().t().to(dtype or torch.int64)


_triangle(torch.tril_indices, aten.tril_indices.default, torch.le)
_triangle(torch.triu_indices, aten.triu_indices.default, torch.ge)


@decomposes(aten._efficientzerotensor.default)
def _zeros(size: Any, **options: Any) -> torch.Tensor:
    return torch.zeros(size, **options)
