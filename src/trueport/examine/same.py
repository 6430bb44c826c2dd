"""Whether two eager results are the same answer."""

from __future__ import annotations

from typing import Any

import torch

from trueport.load.structures import StructureMismatch, flatten

# Sums in another order (threads, atomics) differ in the last bits; randomness differs in the first ones.
_RELATIVE = 1e-4
_ABSOLUTE = 1e-6


def same_outputs(one: Any, other: Any) -> bool:
    """Equal structure, shapes and dtypes, and values equal up to the noise of floating-point sums."""
    return differing_outputs(one, other) == ()


def differing_outputs(one: Any, other: Any) -> tuple[str, ...] | None:
    """The outputs that are not the same; None where the results are not even built alike."""
    leaves, structure = flatten(one)
    try:
        others = structure.flatten(other)
    except StructureMismatch:
        return None
    pairs = zip(leaves, others, strict=True)
    return tuple(leaf.path for leaf, value in pairs if leaf.known and not _same(leaf.value, value))  # others: refused


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return type(one) is type(other) and (one is other or bool(one == other) or bool(one != one and other != other))
    if not isinstance(other, torch.Tensor) or one.dtype != other.dtype:
        return False
    if one.is_nested or one.layout is not torch.strided or one.is_quantized:
        return True  # refused as an output type; nothing to compare, and a nested tensor has not even a shape
    if one.shape != other.shape:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    scale = one.abs().nan_to_num(posinf=0.0).max().item() if one.numel() else 0.0
    return torch.allclose(one, other, rtol=_RELATIVE, atol=_ABSOLUTE * max(1.0, scale), equal_nan=True)
