"""What several families say about axes and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.tensor import Tensor
from trueport.torch_internals import size_functions

FloorDiv = size_functions()["FloorDiv"]
LAST = 2**63 - 1
"""As an end of a slice: whatever the length is."""


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; a 0-d tensor lets itself be addressed as if it had one."""
    return axis % max(rank, 1)


def axes_of(axes: Sequence[int] | int | None, rank: int) -> list[int]:
    """Axes counted from the front; none named means all."""
    if isinstance(axes, int):
        axes = (axes,)
    return [axis_of(axis, rank) for axis in axes] if axes else list(range(rank))


def count(sizes: Sequence[Size]) -> Size:
    """How many elements there are."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def floor_div(size: Size, divisor: int) -> Size:
    """`size // divisor`, of a size that is not negative."""
    return size // divisor if isinstance(size, int) else FloorDiv(size, sympy.Integer(divisor))


def broadcast(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """The sizes that tensors of these sizes broadcast to."""
    rank = max(len(sizes) for sizes in shapes)
    result: list[Size] = [1] * rank
    for sizes in shapes:
        for i, size in enumerate(sizes, rank - len(sizes)):
            if size != 1:
                result[i] = size
    return tuple(result)


def size_of(size: int | Number | sympy.Expr) -> Size:
    return size.expr if isinstance(size, Number) else size


def to_front(op: Builder, x: Tensor, axis: int) -> Tensor:
    """The axis first, the others in their order."""
    return op.transpose(x, [axis, *(a for a in range(x.rank) if a != axis)])


def from_front(op: Builder, x: Tensor, axis: int) -> Tensor:
    """The first axis back where `to_front` took it from."""
    order = list(range(1, x.rank))
    order.insert(axis, 0)
    return op.transpose(x, order)


def slice_axis(op: Builder, x: Tensor, axis: int, start: int | Number | sympy.Expr, end: int | sympy.Expr) -> Tensor:
    return op.Slice(x, op.shape([start]), op.shape([end]), op.ints(axis))
