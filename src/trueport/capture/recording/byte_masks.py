"""Masks of bytes, as they were written before torch had bools: eager still takes some, torch's tracing none."""

from __future__ import annotations

from typing import Any

import torch

from trueport.torch_internals import OpOverload

aten = torch.ops.aten

TAKES_MASKS: frozenset[OpOverload] = frozenset(
    (
        aten.where.self,
        aten.where.ScalarSelf,
        aten.where.ScalarOther,
        aten.where.Scalar,
        aten.index.Tensor,
        aten._unsafe_index.Tensor,
        aten.index_put.default,
        aten.index_put_.default,
    )
)


def with_masks_of_bools(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of such an operator: the condition of a `where` is its first, the indices are its second."""
    first, *others = args
    if isinstance(others[0], list | tuple):
        return (first, [_of_bools(index) for index in others[0]], *others[1:])
    return (_of_bools(first), *others)


def _of_bools(mask: Any) -> Any:
    return mask.bool() if getattr(mask, "dtype", None) == torch.uint8 else mask
