"""Torch functions that compare whole tensors and give a Python bool: in a trace, a symbol for one."""

from __future__ import annotations

from typing import Any

import torch

from trueport.decompositions.registry import always, decomposes
from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS


@decomposes(torch.equal, torch.Tensor.equal, when=always)
def _equal(input: torch.Tensor, other: torch.Tensor) -> Any:
    """Tensors of different sizes are not equal; only those of one size can be compared."""
    if input.dim() != other.dim():
        return False
    same_sizes = RUNTIME_FUNCTIONS.eq(tuple(input.shape), tuple(other.shape))
    return RUNTIME_FUNCTIONS.and_(same_sizes, lambda: (input == other).all().item())


@decomposes(torch.allclose, torch.Tensor.allclose, when=always)
def _allclose(
    input: torch.Tensor, other: torch.Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    return torch.isclose(input, other, rtol, atol, equal_nan).all().item()


@decomposes(torch.ops.aten._is_all_true.default)
def _is_all_true(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.all()


@decomposes(torch.ops.aten._is_any_true.default)
def _is_any_true(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.any()


@decomposes(torch.is_nonzero, torch.Tensor.is_nonzero, when=always)
def _is_nonzero(input: torch.Tensor) -> Any:
    return (input != 0).reshape(()).item()
