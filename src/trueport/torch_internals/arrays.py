"""numpy as torch itself writes it with tensors (`torch._numpy`, which torch.compile traces numpy code with)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch._numpy as _numpy

Array: Any = _numpy.ndarray  # type: ignore[attr-defined]
"""An array that is a tensor, which it holds as `tensor`."""


def on_tensors(name: str) -> Callable[..., Any] | None:
    """The function of this name of numpy's, for such arrays."""
    found = getattr(_numpy, name, None)
    return found if callable(found) else None


def array(tensor: torch.Tensor) -> Any:
    """A tensor as such an array."""
    return Array(tensor)


def torch_dtype(dtype: Any) -> torch.dtype:
    """The dtype of torch's that is one of numpy's."""
    found: torch.dtype = _numpy.dtype(np.dtype(dtype).name).torch_dtype
    return found


@contextlib.contextmanager
def numpy_leads_to(function: Callable[..., Any], from_numpy: Callable[..., Any]) -> Iterator[None]:
    """Meanwhile numpy's own functions, given such an array, call `function(name, args, kwargs)`; torch.from_numpy is
    another; and the arrays take numpy's dtypes."""

    def of_a_function(_self: Any, func: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        return function(func.__name__, args, kwargs)

    def of_a_ufunc(_self: Any, func: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return function(func.__name__, args, kwargs) if method == "__call__" else NotImplemented

    def astype(self: Any, dtype: Any, *_: Any, **__: Any) -> Any:
        return array(self.tensor.to(torch_dtype(dtype)))

    def of_torch(_cls: Any, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(arg.tensor if isinstance(arg, Array) else arg for arg in args), **(kwargs or {}))

    before, astype_before = torch.from_numpy, Array.astype
    Array.astype = astype
    Array.__torch_function__ = classmethod(of_torch)
    Array.__array_function__, Array.__array_ufunc__ = of_a_function, of_a_ufunc
    torch.from_numpy = from_numpy
    try:
        yield
    finally:
        del Array.__torch_function__, Array.__array_function__, Array.__array_ufunc__
        torch.from_numpy, Array.astype = before, astype_before
