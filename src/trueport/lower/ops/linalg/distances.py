"""Distances between the rows of one matrix."""

from __future__ import annotations

import math

from trueport.lower.builder import Builder
from trueport.lower.ops.linalg.matrices import down
from trueport.lower.table import op
from trueport.lower.tensor import Tensor


@op("aten::_pdist_forward")
def pdist(op: Builder, self: Tensor, p: float = 2) -> Tensor:
    """_pdist_forward(Tensor self, float p=2) -> Tensor: each row with each that comes after it"""
    rows = self.known_sizes[0]
    pairs = op.NonZero(op.Less(down(op, rows), op.range(rows)))
    first, second = (op.Gather(self, op.Gather(pairs, op.const(i), axis=0), axis=0) for i in (0, 1))
    apart = op.Abs(op.Sub(first, second))
    if p == 0:
        return op.ReduceSum(op.cast(op.Greater(apart, 0), self.element), op.ints(1), keepdims=0)
    if p == 1:
        return op.ReduceSum(apart, op.ints(1), keepdims=0)
    if p == 2:
        return op.Sqrt(op.ReduceSum(op.Mul(apart, apart), op.ints(1), keepdims=0))
    if math.isinf(p):
        # Beside a zero, so that rows without elements have a largest one too.
        return op.ReduceMax(op.Pad(apart, op.ints(0, 0, 0, 1)), op.ints(1), keepdims=0)
    return op.Pow(op.ReduceSum(op.Pow(apart, float(p)), op.ints(1), keepdims=0), 1 / p)
