"""Tensors made by calling their type, as older code does: `torch.Tensor([w, h])`, `torch.LongTensor(n, 2)`, `x.new(n)`.

The types' constructors read every number in C++, so a traced one would be frozen there. With traced numbers among what
they are given, they are said by functions that take those.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from trueport.capture.containers.lists import is_open
from trueport.capture.python.builtin_functions import traced_for
from trueport.capture.recording.flow import Flow
from trueport.decompositions.arrays import as_tensor
from trueport.decompositions.creation import tensor_of
from trueport.decompositions.registry import always, decomposes, holds_symbol
from trueport.torch_internals import Array
from trueport.torch_internals.symbolic import plain_number

TYPES = {
    "Tensor": None,
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ShortTensor": torch.int16,
    "CharTensor": torch.int8,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


def _made(name: str, control: Flow, *args: Any, **kwargs: Any) -> Any:
    if not kwargs and any(holds_traced(each) for each in args):
        return of_sizes_or_items(TYPES[name] or torch.get_default_dtype(), *args)
    return getattr(torch, name)(*args, **kwargs)


def holds_traced(given: Any) -> bool:
    """Numbers known only when the model runs, tensors of one number, a list of open length, or an array of them."""
    if is_open(given) or isinstance(given, Array):
        return True
    if isinstance(given, (list, tuple)):
        return any(isinstance(each, torch.Tensor) or holds_traced(each) for each in given)
    return holds_symbol(given)


def of_sizes_or_items(dtype: torch.dtype, *args: Any) -> torch.Tensor:
    """Numbers one by one, or a torch.Size, are the sizes of a tensor that nobody has written; a list is its items."""
    if len(args) != 1 or isinstance(args[0], (int, torch.SymInt, torch.Size)):
        return torch.empty(args[0] if isinstance(args[0], torch.Size) else args, dtype=dtype)
    if isinstance(args[0], Array):
        return as_tensor(args[0]).to(dtype)  # type: ignore[no-any-return]
    made: torch.Tensor = (torch.as_tensor if is_open(args[0]) else tensor_of)(args[0], dtype=dtype)
    return made


for _name in TYPES:
    traced_for(getattr(torch, _name))(functools.partial(_made, _name))


@traced_for(torch.Size)
def _size(control: Flow, *args: Any) -> torch.Size:
    """`torch.Size([h, w])` of tensors of one number: torch takes numbers only, and asks no tensor for its own."""
    return torch.Size(*([plain_number(each) for each in given] if isinstance(given, list) else given for given in args))


@decomposes(torch.Tensor.new, when=always)
def _new(like: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if kwargs or not any(holds_traced(each) for each in args):
        return NotImplemented
    return of_sizes_or_items(like.dtype, *args)


@decomposes(torch.Tensor.new_tensor, when=always)
def _new_tensor(like: torch.Tensor, data: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if not holds_traced(data):
        return NotImplemented
    return of_sizes_or_items(dtype or like.dtype, data if is_open(data) or isinstance(data, (list, tuple)) else [data])
