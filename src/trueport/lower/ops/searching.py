"""Finding where a value belongs in an order: `searchsorted` and `bucketize`."""

from __future__ import annotations

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.dtypes import promoted
from trueport.lower.loops import loop
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

INT64, DOUBLE = ir.DataType.INT64, ir.DataType.DOUBLE


@op("aten::searchsorted.Tensor", "aten::searchsorted.Scalar")
def searchsorted(
    op: Builder,
    sorted_sequence: Tensor,
    self: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False,
    str? side=None, Tensor? sorter=None) -> Tensor"""
    if sorter is not None:
        sizes, in_order = sorted_sequence.sizes, op.GatherElements(sorted_sequence, sorter, axis=-1)
        in_order.settle(sizes)
        sorted_sequence = in_order
    return _found(op, sorted_sequence, self, right or side == "right")


@op("aten::bucketize.Tensor", "aten::bucketize.Scalar")
def bucketize(
    op: Builder, self: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"""
    return _found(op, boundaries, self, right)


def _found(op: Builder, borders: Tensor, x: Operand, right: bool) -> Tensor:
    """Torch's own binary search, step by step: it also agrees where the borders are not in order, or are NaN."""
    dtype = promoted(borders, x)
    values, lines = op.scalar(x, dtype), op.cast(borders, dtype)
    shape = op.result.shape
    length = borders.known_sizes[-1]
    last = op.size(length - 1)

    def halve(_: Tensor, states: list[Tensor]) -> list[Tensor]:
        start, end = states
        middle = op.Div(op.Add(start, end), 2)
        place = op.Min(middle, last)
        border = op.Gather(lines, place) if borders.rank == 1 else op.GatherElements(lines, place, axis=-1)
        reached = op.Greater(border, values) if right else op.GreaterOrEqual(border, values)
        further = op.And(op.Not(reached), op.Less(start, end))
        return [op.Where(further, op.Add(middle, 1), start), op.Where(further, end, middle)]

    first = [op.expand(op.size(size), shape) for size in (0, length)]
    for state in first:
        state.settle(shape)
    return op.cast(loop(op, _rounds(op, length), first, halve)[0], op.result.dtype)


def _rounds(op: Builder, length: Size) -> Tensor:
    """How often a length can be halved until nothing is left of it."""
    if isinstance(length, int):
        return op.const(length.bit_length())
    number = op.size(Number(length, int))
    halvings = op.Div(op.Log(op.cast(op.Add(number, 1), DOUBLE)), 0.6931471805599453)
    return op.Min(number, op.cast(op.Add(op.Ceil(halvings), 1), INT64))
