"""Lists of open length as outputs: ONNX sequences of tensors.

1. Rows of a tensor, and pieces of one along an axis, are a `SplitToSequence`.
2. So are items that are packed one after the other and differ along one axis only, once they have their axes back.
3. Items that differ along more axes, and dtypes that the runtime does not split, are taken one by one in a `Loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from trueport.graph.regions import OpenItems, Size
from trueport.lower.builder import Builder
from trueport.lower.passes.kernels import has_kernel
from trueport.lower.signature import signature_of
from trueport.lower.subgraphs import made_here
from trueport.lower.tensor import Tensor
from trueport.lower.walk import Walk

ItemSizes = Sequence[Size | None]
"""The sizes of every item of a sequence; None where they differ."""


def is_sequence(value: ir.Value) -> bool:
    return isinstance(value.type, ir.SequenceType)


def sequence_of(lowering: Walk, items: OpenItems) -> Tensor:
    """The tensors of a list, as one value of the ONNX graph."""
    op, rows = lowering.op, lowering.tensor(items.rows)
    if items.table is not None:
        pair = rows.known_sizes[1:]  # complex numbers have a last axis of two
        return _unpacked(op, rows, lowering.tensor(items.table), items.axis, items.sizes, pair)
    before, after = rows.known_sizes[: items.axis], rows.known_sizes[items.axis + 1 :]
    if items.lengths is not None:
        return _pieces(op, rows, items.axis, lowering.tensor(items.lengths), (*before, None, *after))
    if _can_split(op, rows):
        whole = op.SplitToSequence(rows, axis=items.axis, keepdims=0)
        return _declared(op, whole, rows.element, (*before, *after))
    count = op.size(rows.known_sizes[items.axis])
    return _one_by_one(op, rows.element, count, lambda i: op.Gather(rows, i, axis=items.axis), (*before, *after))


def _pieces(op: Builder, rows: Tensor, axis: int, lengths: Tensor, sizes: ItemSizes) -> Tensor:
    if _can_split(op, rows):
        return _declared(op, op.SplitToSequence(rows, lengths, axis=axis), rows.element, sizes)
    cut = _Cut(op, lengths)
    return _one_by_one(op, rows.element, cut.count, lambda i: cut.piece(rows, axis, i), sizes)


def _unpacked(op: Builder, flat: Tensor, table: Tensor, along: int, sizes: ItemSizes, pair: tuple[Size, ...]) -> Tensor:
    """Items whose elements lie one after the other, each with the axis `along` first."""
    order = [*range(1, along + 1), 0, *range(along + 1, len(sizes) + len(pair))]
    others = [size for axis, size in enumerate(sizes) if axis != along]
    lengths = op.Gather(table, op.const(along), axis=1)
    if None not in others:
        total = op.ReduceSum(lengths, op.ints(0))
        target = op.Concat(total, op.shape([*(size for size in others if size is not None), *pair]), axis=0)
        target.settle((len(order),))
        whole = op.transpose(op.Reshape(flat, target, allowzero=1), order)
        return _pieces(op, whole, along, lengths, (*sizes, *pair))
    cut = _Cut(op, op.ReduceProd(table, op.ints(1), keepdims=0))

    def item(i: Tensor) -> Tensor:
        own = op.Gather(op.Gather(table, i, axis=0), op.ints(along, *(a for a in range(len(sizes)) if a != along)))
        target = op.Concat(own, op.shape(pair), axis=0) if pair else own
        target.settle((len(order),))
        return op.transpose(op.Reshape(cut.piece(flat, 0, i), target, allowzero=1), order)

    return _one_by_one(op, flat.element, cut.count, item, (*sizes, *pair))


class _Cut:
    """Where the pieces of these lengths end and begin."""

    def __init__(self, op: Builder, lengths: Tensor) -> None:
        self._op, self._lengths = op, lengths
        self._ends = op.CumSum(lengths, op.const(0))
        self.count = op.Reshape(op.Shape(lengths), op.shape(()))

    def piece(self, rows: Tensor, axis: int, number: Tensor) -> Tensor:
        op = self._op
        at = op.Reshape(number, op.ints(1))
        end = op.Gather(self._ends, at, axis=0)
        return op.Slice(rows, op.Sub(end, op.Gather(self._lengths, at, axis=0)), end, op.ints(axis))


def _one_by_one(
    op: Builder, dtype: ir.DataType, count: Tensor, item: Callable[[Tensor], Tensor], sizes: ItemSizes
) -> Tensor:
    """A `Loop` that puts an item at the end of the sequence in each round."""
    nothing = _declared(op, op.SequenceEmpty(dtype=int(dtype)), dtype, sizes)
    with op.inside():
        here = Tensor(op, op.new_name("round"), ir.DataType.INT64, ())
        goes_on = Tensor(op, op.new_name("going"), ir.DataType.BOOL, ())
        before = _declared(op, Tensor(op, op.new_name("items")), dtype, sizes)
        after = _declared(op, op.SequenceInsert(before, item(here)), dtype, sizes)
        outputs = made_here(op, [goes_on, after])
        outputs[0].settle(())
        body = ir.Graph([here, goes_on, before], outputs, nodes=op.scope.nodes, name=op.new_name("rounds"))
    whole = _declared(op, Tensor(op, op.new_name("items")), dtype, sizes)
    op.append("Loop", [count, None, nothing], [ir.AttrGraph("body", body)], [whole])
    return whole


def _can_split(op: Builder, rows: Tensor) -> bool:
    return has_kernel(signature_of("SplitToSequence", op.opset), {"T": rows.element})


def _declared(op: Builder, value: Tensor, dtype: ir.DataType, sizes: ItemSizes) -> Tensor:
    """Say that a value is a sequence of tensors of this dtype and these sizes."""
    known = op.sizes.declared(tuple(0 if size is None else size for size in sizes))
    value.type = ir.SequenceType(ir.TensorType(dtype))
    value.shape = ir.Shape([None if size is None else known[axis] for axis, size in enumerate(sizes)])
    return value
