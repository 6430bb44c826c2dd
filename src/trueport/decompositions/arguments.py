"""What calls of torch are given, and return: lists and tuples within each other, of tensors and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

DTYPES: Mapping[type, torch.dtype] = {int: torch.int64, float: torch.float64, bool: torch.bool}
"""What a Python number is as a tensor."""


def flat(argument: Any) -> Iterator[Any]:
    """What lists and tuples within each other hold, one after the other: calls are given such, and return them."""
    if isinstance(argument, (list, tuple)):
        for part in argument:
            yield from flat(part)
    else:
        yield argument


def mapped(argument: Any, function: Callable[[Any], Any]) -> Any:
    """The same lists and tuples, with what a function makes of each thing in them."""
    if not isinstance(argument, (list, tuple)):
        return function(argument)
    make = getattr(argument, "_make", type(argument))  # as a named tuple is made
    return make([mapped(part, function) for part in argument])
