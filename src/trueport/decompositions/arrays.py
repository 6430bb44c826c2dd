"""numpy arrays that are made of traced numbers: `np.arange(w)`, `np.array(x.shape[2:]) // 8`.

Code from before torch had the functions (anchors, grids, position tables) computes such arrays of sizes and ends in
`torch.from_numpy`. They are held as tensors: torch's own rendering of numpy does with them what numpy does with arrays,
dtypes included, and everything is recorded like the operations of tensors that it is. An array that is made of a
tensor's values (`x.numpy()`) is none of these: that leaves torch, and is said (TP204).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from trueport.decompositions.arguments import flat, mapped
from trueport.decompositions.creation import tensor_of
from trueport.decompositions.registry import holds_symbol
from trueport.torch_internals import Array, array, numpy_leads_to, on_tensors, torch_dtype
from trueport.torch_internals.symbolic import is_integer, is_single, number_kind, plain_number

_FROM_NUMPY = torch.from_numpy


def is_of_numpy(function: Any) -> bool:
    return isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").split(".")[0] == "numpy"


def holds_array(given: Any) -> bool:
    return isinstance(given, Array) or (type(given) in (list, tuple) and any(map(holds_array, given)))


def computed(name: str, args: Any, kwargs: Any) -> Any:
    """What a function of numpy's gives for traced numbers and arrays of them; NotImplemented where it is unknown."""
    make = _MADE.get(name)
    if make is not None and (holds_symbol(args) or holds_array(args)):
        return array(make(*map(_number, args), **{key: _number(value) for key, value in kwargs.items()}))
    function = on_tensors(name)
    if function is None:
        return NotImplemented
    return function(*map(_array, args), **{key: _array(value) for key, value in kwargs.items()})


def arrays_of_traced_numbers() -> contextlib.AbstractContextManager[None]:
    """While a model is traced, numpy knows what to do with them."""
    return numpy_leads_to(computed, as_tensor)


def as_tensor(given: Any) -> Any:
    return _tensor_of(given) if holds_array(given) else _FROM_NUMPY(given)


def _tensor_of(given: Any) -> Any:
    return given.tensor if isinstance(given, Array) else given


def with_tensors(given: Any) -> Any:
    """Arguments of a function of torch's, with the tensors that arrays of traced numbers are."""
    return mapped(given, _tensor_of) if holds_array(given) else given


def _array(given: Any) -> Any:
    """An argument as torch's rendering of numpy takes it."""
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        return np.dtype(given).name
    if isinstance(given, (np.ndarray, np.generic)):
        return array(_FROM_NUMPY(np.array(given)))
    if isinstance(given, (torch.SymInt, torch.SymFloat)):
        return array(tensor_of(given, dtype=_dtype(None, given)))
    if isinstance(given, (list, tuple)) and holds_symbol(given) and not holds_array(given):
        return array(_of_items(given))
    return type(given)(map(_array, given)) if type(given) in (list, tuple) and holds_array(given) else given


def _number(given: Any) -> Any:
    """An array of one number as the number: `np.arange(0, sizes[1])`."""
    if not holds_array(given):
        return given
    return mapped(given, lambda each: plain_number(_tensor_of(each)) if is_single(_tensor_of(each)) else each)


def _dtype(dtype: Any, *numbers: Any) -> torch.dtype:
    """As numpy chooses: int64 for whole numbers, float64 for others."""
    if dtype is not None:
        return torch_dtype(dtype)
    floats = any(number_kind(n) is float or isinstance(n, np.floating) for n in numbers)
    return torch.float64 if floats else torch.int64


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> torch.Tensor:
    start, stop = (0, start) if stop is None else (start, stop)
    kind = _dtype(dtype, start, stop, step)
    if all(map(is_integer, (start, stop, step))):
        return torch.arange(start, stop, step, dtype=torch.int64).to(kind)
    count: Any = torch.sym_max(torch.sym_int(torch.sym_float((stop - start) / step).__ceil__()), 0)
    made: torch.Tensor = torch.arange(count, dtype=torch.float64) * step + start
    return made.to(kind)


def _zeros(shape: Any, dtype: Any = float, **_: Any) -> torch.Tensor:
    return torch.zeros(tuple(flat(shape)), dtype=_dtype(dtype))


def _ones(shape: Any, dtype: Any = float, **_: Any) -> torch.Tensor:
    return torch.ones(tuple(flat(shape)), dtype=_dtype(dtype))


def _full(shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
    return torch.full(tuple(flat(shape)), fill_value, dtype=_dtype(dtype, fill_value))


def _linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, *, dtype: Any = None) -> torch.Tensor:
    end = stop if endpoint else start + (stop - start) * (num - 1) / num
    return torch.linspace(start, end, num, dtype=torch.float64).to(_dtype(dtype, 0.0))


def _eye(rows: Any, columns: Any = None, k: int = 0, dtype: Any = float) -> torch.Tensor:
    across = torch.arange(rows if columns is None else columns)
    return (across == torch.arange(rows).unsqueeze(1) + k).to(_dtype(dtype))


def _of_items(items: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
    if isinstance(items, Array):
        held: torch.Tensor = items.tensor
        return held if dtype is None else held.to(torch_dtype(dtype))
    made: torch.Tensor = tensor_of(with_tensors(items), dtype=_dtype(dtype, *map(_example, flat(items))))
    return made


def _example(item: Any) -> Any:
    """A number, or one of those in an array."""
    return item if not isinstance(item, Array) else 0.0 if item.tensor.is_floating_point() else 0


_MADE: dict[str, Callable[..., torch.Tensor]] = {
    "arange": _arange,
    "zeros": _zeros,
    "empty": _zeros,
    "ones": _ones,
    "full": _full,
    "linspace": _linspace,
    "eye": _eye,
    "identity": _eye,
    "array": _of_items,
    "asarray": _of_items,
}
"""What makes an array of numbers: torch's rendering would ask for plain ones."""
