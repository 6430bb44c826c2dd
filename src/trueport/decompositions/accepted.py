"""Arguments of an operator that eager takes and torch's tracing does not, made into ones that it takes.

1. Masks of bytes, as they were written before torch had bools.
2. The -1 of a reshape. Torch divides, and asks first whether the other sizes are all larger than 0; of a size that
   depends on values, or that a branch has chosen, it cannot know. Here it is worked out by cancelling sizes. Eager
   refuses a -1 beside a 0, so nothing is lost by not asking.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from trueport.decompositions.shaping import is_left_open
from trueport.torch_internals import OpOverload
from trueport.torch_internals.symbolic import has_hint, is_symbolic, same_number

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


RESHAPES: frozenset[OpOverload] = frozenset((aten.reshape.default, aten.view.default, aten._unsafe_view.default))
ASK_FOR_STRIDES: frozenset[OpOverload] = RESHAPES | {
    *(aten.flatten.using_ints, aten.unflatten.int, aten.view_as.default, aten.reshape_as.default),
    *(aten.linear.default, aten.group_norm.default, aten.native_group_norm.default),
}
"""Strides decide whether the result is a view, or by which product it is computed; its values are the same."""


def with_all_sizes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a reshape with no size left open, where torch would ask in vain."""
    tensor, wanted, *others = args
    given = [size for size in wanted if not is_left_open(size)]
    if len(given) != len(wanted) - 1 or not any(_depends_on_values(size) for size in given):
        return args
    left = list(tensor.shape)
    divisors = [size for size in given if not _cancelled(left, size)]
    missing = math.prod(left) // math.prod(divisors) if divisors else math.prod(left)
    return (tensor, [missing if is_left_open(size) else size for size in wanted], *others)


def _depends_on_values(size: Any) -> bool:
    return is_symbolic(size) and not has_hint(size)


def _cancelled(left: list[Any], size: Any) -> bool:
    """Whether it was one of the sizes that are left, which then has gone."""
    for i, other in enumerate(left):
        if same_number(size, other):
            del left[i]
            return True
    return False
