"""Bags of embeddings: rows of a table, summed, averaged or compared within each bag."""

from __future__ import annotations

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.ops.joining import put_rows
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

INT64 = ir.DataType.INT64
_SUM, _MEAN, _MAX = 0, 1, 2
_HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

Result = tuple[Tensor, None, None, None]
"""What eager keeps for the backward pass besides the bags is not computed."""


@op("aten::embedding_bag.padding_idx", "aten::embedding_bag")
def embedding_bag(
    op: Builder,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Result:
    """embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode,
    bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx)
    -> (Tensor, Tensor, Tensor, Tensor)
    """
    if padding_idx is not None and padding_idx < 0:
        padding_idx += int(weight.known_sizes[0])
    bags = _Bags(op, indices, offsets, padding_idx)
    dtype = weight.element
    rows = op.Gather(op.cast(weight, ir.DataType.FLOAT) if dtype in _HALF else weight, bags.indices, axis=0)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(op.cast(per_sample_weights, rows.element), op.ints(1)))
    width = weight.known_sizes[1]
    found = bags.largest(rows, width) if mode == _MAX else bags.total(rows, width)
    if mode == _MEAN:
        found = op.Div(found, op.cast(op.Max(op.Unsqueeze(bags.counts(), op.ints(1)), 1), rows.element))
    if include_last_offset:
        found = op.Slice(found, op.ints(0), op.ints(-1), op.ints(0))
    return op.cast(found, dtype), None, None, None


@op("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag_forward(
    op: Builder,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Result:
    """_embedding_bag: as embedding_bag.padding_idx, with -1 for no padding"""
    settings = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset)
    return embedding_bag(op, weight, indices, offsets, *settings, padding_idx if padding_idx >= 0 else None)


class _Bags:
    """Which bag each index belongs to: the last one that starts at or before it. A bag may be empty."""

    def __init__(self, op: Builder, indices: Tensor, offsets: Tensor, padding_idx: int | None) -> None:
        self._op = op
        self.indices = op.cast(indices, INT64)
        self._number = offsets.known_sizes[0]
        starts = op.cast(offsets, INT64)
        length = indices.known_sizes[0]
        # A bag that starts behind the last index is empty, and has its mark in one place more.
        marks = op.ScatterElements(
            op.expand(op.const(0), (length + 1,)), starts, op.expand(op.const(1), (self._number,)), reduction="add"
        )
        bag = op.Sub(op.CumSum(marks, op.const(0)), 1)
        self._bag = op.Slice(bag, op.ints(0), op.ints(-1), op.ints(0))
        self._counted = None if padding_idx is None else op.Not(op.Equal(self.indices, padding_idx))
        self._length = length

    def total(self, rows: Tensor, width: object) -> Tensor:
        return self._collect(self._leave_out(rows, 0.0), 0.0, width, "add")

    def largest(self, rows: Tensor, width: object) -> Tensor:
        lowest = float("-inf")
        found = self._collect(self._leave_out(rows, lowest), lowest, width, "max")
        empty = self._op.Equal(self._op.Unsqueeze(self.counts(), self._op.ints(1)), 0)
        return self._op.Where(empty, self._op.const(0, rows.element), found)

    def counts(self) -> Tensor:
        """How many indices each bag has, without the padding."""
        one = self._op.expand(self._op.const(1), (self._length,))
        if self._counted is not None:
            one = self._op.cast(self._counted, INT64)
        blank = self._op.expand(self._op.const(0), (self._number,))
        return self._op.ScatterElements(blank, self._bag, one, axis=0, reduction="add")

    def _leave_out(self, rows: Tensor, instead: float) -> Tensor:
        if self._counted is None:
            return rows
        kept = self._op.Unsqueeze(self._counted, self._op.ints(1))
        return self._op.Where(kept, rows, self._op.const(instead, rows.element))

    def _collect(self, rows: Tensor, start: float, width: object, reduction: str) -> Tensor:
        blank = self._op.expand(self._op.const(start, rows.element), (self._number, width))
        return put_rows(self._op, blank, self._bag, rows, 0, reduction)
