"""Torch functions that must be seen before they reach the dispatcher.

Some would read a traced number as a plain one in C++ and freeze it (see `stand_ins.py`); `.tolist()` would read memory;
and turning gradients on inside forward (forces as derivatives of an energy) needs autograd, which the trace skips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from trueport.capture.stand_ins import stand_in_for
from trueport.torch_internals import SET_GRAD_ENABLED, BelowAutograd

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
        elif func is torch.Tensor.tolist:
            return _to_list(args[0])
        elif (stand_in := stand_in_for(func, args, kwargs)) is not None:
            return stand_in(*args, **kwargs)
        return func(*args, **kwargs)


def _to_list(tensor: torch.Tensor) -> Any:
    """`tensor.tolist()` as the items themselves: plain numbers where they are constants, symbols where not."""
    if tensor.dim() == 0:
        return tensor.item()
    return [_to_list(part) for part in tensor.unbind(0)]
