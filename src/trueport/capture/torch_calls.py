"""Torch functions that must be seen before they reach the dispatcher.

`torch.tensor([n, m])` of traced numbers would read them as plain ones in C++ and freeze them; turning gradients on
inside forward (forces as derivatives of an energy) needs autograd, which the trace otherwise skips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from trueport.torch_internals import SET_GRAD_ENABLED, BelowAutograd

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class TorchCalls(TorchFunctionMode):
    """`needs_autograd` is called once when the user's code turns gradients on."""

    def __init__(self, needs_autograd: Callable[[], None]) -> None:
        super().__init__()
        self._needs_autograd = needs_autograd
        self._below: Any = None

    def __enter__(self) -> TorchCalls:
        self._below = BelowAutograd()
        super().__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        self._below = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is SET_GRAD_ENABLED:
            if args[0]:
                self._needs_autograd()
                self._below = None
            elif self._below is None:
                self._below = BelowAutograd()
        elif func in (torch.tensor, torch.as_tensor, torch.scalar_tensor) and args and _holds_symbol(args[0]):
            return _stack(args[0], kwargs.get("dtype"))
        return func(*args, **kwargs)


def _holds_symbol(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_symbol(d) for d in data)
    return isinstance(data, _SYMBOLIC)


def _kinds(data: Any) -> set[type]:
    if isinstance(data, (list, tuple)):
        return set().union(*map(_kinds, data)) if data else set()
    if isinstance(data, torch.Tensor):
        return {float if data.dtype.is_floating_point else bool if data.dtype is torch.bool else int}
    return {{torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}.get(type(data), type(data))}


def _stack(data: Any, dtype: torch.dtype | None) -> torch.Tensor:
    """`torch.tensor(data)` for nested lists that hold traced numbers."""
    if dtype is None:
        kinds = _kinds(data)
        dtype = torch.get_default_dtype() if float in kinds else torch.int64 if int in kinds else torch.bool
    if isinstance(data, (list, tuple)):
        return torch.stack([_stack(d, dtype) for d in data])
    if isinstance(data, torch.Tensor):
        return data.to(dtype)
    if isinstance(data, torch.SymBool):
        data = torch.sym_ite(data, 1, 0)
        return torch.full((), data, dtype=torch.int64).to(dtype)
    return torch.full((), data, dtype=dtype)
