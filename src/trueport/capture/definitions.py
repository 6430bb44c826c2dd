"""Operators said by other operators, where torch's own way would read a free size as a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trueport.torch_internals import OpOverload

aten = torch.ops.aten


def _unbind(tensor: torch.Tensor, dim: int = 0) -> list[torch.Tensor]:
    """Torch undoes `unbind` by way of the plain sizes of all axes, `select` by way of the symbolic ones."""
    return [tensor.select(dim, i) for i in range(tensor.shape[dim])]


def _tensor_split(tensor: torch.Tensor, sections: int, dim: int = 0) -> list[torch.Tensor]:
    """The first parts are one longer where the length is no multiple; torch would count them out in plain numbers."""
    length = tensor.shape[dim]
    sizes = [(length + sections - 1 - i) // sections for i in range(sections)]
    return list(tensor.split_with_sizes(sizes, dim))


DEFINITIONS: dict[OpOverload, Callable[..., Any]] = {aten.tensor_split.sections: _tensor_split}
"""Used instead of torch's own."""

WRITABLE_VIEWS: dict[OpOverload, Callable[..., Any]] = {aten.unbind.int: _unbind}
"""Used where views may be written to; elsewhere such an operator is recorded as it is."""
