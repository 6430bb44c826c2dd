"""Running totals along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.dtypes import torch_dtype
from trueport.lower.ops.axes import axis_of, from_front
from trueport.lower.ops.binary import logaddexp
from trueport.lower.ops.create import filled
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Step = Callable[[Builder, Tensor, Tensor], Tensor]
Body = Callable[[Builder, Sequence[Tensor], Sequence[Tensor]], list[Tensor]]


@op("aten::cumsum")
def cumsum(op: Builder, self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"""
    x = op.cast(self, op.result.dtype)
    if not x.rank:
        return x
    if x.element in (ir.DataType.INT8, ir.DataType.INT16, ir.DataType.UINT8):
        return op.cast(op.CumSum(op.cast(x, ir.DataType.INT64), op.const(axis_of(dim, x.rank))), x.element)
    return op.CumSum(x, op.const(axis_of(dim, x.rank)))


@op("aten::cumprod")
def cumprod(op: Builder, self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"""
    x = op.cast(self, op.result.dtype)
    if x.element == ir.DataType.FLOAT:  # carried in float64, as eager does: it may come back from beyond the largest
        x = op.cast(x, ir.DataType.DOUBLE)
    return _total(op, x, dim, 1, lambda op, total, x: op.Mul(total, x))


@op("aten::logcumsumexp")
def logcumsumexp(op: Builder, self: Tensor, dim: int) -> Tensor:
    """logcumsumexp(Tensor self, int dim) -> Tensor"""
    return _total(op, self, dim, float("-inf"), logaddexp)


@op("aten::cummax")
def cummax(op: Builder, self: Tensor, dim: int) -> Sequence[Tensor]:
    """cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"""
    x = op.cast(self, ir.DataType.INT32) if self.dtype == ir.DataType.BOOL else self
    lowest = -math.inf if x.element.is_floating_point() else int(x.element.min)
    return _extreme(op, x, dim, lowest, lambda op, x, best: _or_nan(op, x, op.GreaterOrEqual(x, best)))


@op("aten::cummin")
def cummin(op: Builder, self: Tensor, dim: int) -> Sequence[Tensor]:
    """cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"""
    x = op.cast(self, ir.DataType.INT32) if self.dtype == ir.DataType.BOOL else self
    highest = math.inf if x.element.is_floating_point() else int(x.element.max)
    return _extreme(op, x, dim, highest, lambda op, x, best: _or_nan(op, x, op.LessOrEqual(x, best)))


def _or_nan(op: Builder, x: Tensor, better: Tensor) -> Tensor:
    """NaN wins over every number, and stays until the next NaN."""
    return op.Or(op.IsNaN(x), better) if x.element.is_floating_point() else better


def _total(op: Builder, x: Tensor, dim: int, start: float, step: Step) -> Tensor:
    """Half precision is carried in float32, as eager does: a product may come back from beyond the largest."""
    if not x.rank:
        return x
    if x.element in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        x = op.cast(x, ir.DataType.FLOAT)
    axis = axis_of(dim, x.rank)
    return running(op, x, axis, filled(op, _without(x.known_sizes, axis), start, torch_dtype(x.element)), step)


def running(op: Builder, x: Tensor, axis: int, first: Tensor, step: Step) -> Tensor:
    """A `Scan`: ONNX has no other running total than the sum. `first` has the sizes of x without the axis."""

    def body(op: Builder, states: Sequence[Tensor], items: Sequence[Tensor]) -> list[Tensor]:
        return [step(op, states[0], items[0])]

    return _scan(op, [first], [x], axis, body)[0]


def _extreme(op: Builder, x: Tensor, dim: int, lowest: float, better: Step) -> Sequence[Tensor]:
    """The best so far with its place. Of equals the last, in eager."""
    if not x.rank:
        return x, op.const(0)
    axis = axis_of(dim, x.rank)
    row = _without(x.known_sizes, axis)
    length = x.known_sizes[axis]
    lined_up = op.reshape(op.range(length), [length if i == axis else 1 for i in range(x.rank)])
    places = op.expand(lined_up, x.known_sizes)
    first = [filled(op, row, lowest, torch_dtype(x.element)), filled(op, row, 0, torch.int64)]

    def body(op: Builder, states: Sequence[Tensor], items: Sequence[Tensor]) -> list[Tensor]:
        wins = better(op, items[0], states[0])
        return [op.Where(wins, item, state) for item, state in zip(items, states, strict=True)]

    return _scan(op, first, [x, places], axis, body)


def _scan(op: Builder, first: Sequence[Tensor], scanned: Sequence[Tensor], axis: int, body: Body) -> list[Tensor]:
    """Every state along the axis. The runtime's Scan crashes on what is empty, in whichever axis; its Loop does not."""
    row = first[0].known_sizes
    if all(op.sizes.is_positive(size) for size in scanned[0].known_sizes):
        return _by_scan(op, first, scanned, axis, row, body)
    return _by_loop(op, first, scanned, axis, row, body)


def _by_scan(
    op: Builder, first: Sequence[Tensor], scanned: Sequence[Tensor], axis: int, row: tuple[Size, ...], body: Body
) -> list[Tensor]:
    with op.inside():
        states, items = ([Tensor(op, op.new_name(stem), x.element, row) for x in first] for stem in ("state", "item"))
        inner = _graph(op, [*states, *items], [], body(op, states, items), row)
    last, out = ([Tensor(op, op.new_name(stem), x.element) for x in first] for stem in ("last", "Scan"))
    attributes = [
        ir.AttrGraph("body", inner),
        ir.AttrInt64("num_scan_inputs", len(scanned)),
        ir.AttrInt64s("scan_input_axes", [axis] * len(scanned)),
        ir.AttrInt64s("scan_output_axes", [axis] * len(scanned)),
    ]
    op.append("Scan", [*first, *scanned], attributes, [*last, *out])
    return out


def _by_loop(
    op: Builder, first: Sequence[Tensor], scanned: Sequence[Tensor], axis: int, row: tuple[Size, ...], body: Body
) -> list[Tensor]:
    length = scanned[0].known_sizes[axis]
    times, going = op.size(length), op.const(True)
    with op.inside():
        here = Tensor(op, op.new_name("iteration"), ir.DataType.INT64, ())
        goes_on = Tensor(op, op.new_name("condition"), ir.DataType.BOOL, ())
        states = [Tensor(op, op.new_name("state"), x.element, row) for x in first]
        items = [op.Gather(x, here, axis=axis) for x in scanned]
        inner = _graph(op, [here, goes_on, *states], [op.Identity(goes_on)], body(op, states, items), row)
    last, stacked = ([Tensor(op, op.new_name(stem), x.element) for x in first] for stem in ("last", "Loop"))
    op.append("Loop", [times, going, *first], [ir.AttrGraph("body", inner)], [*last, *stacked])
    # After no round at all the runtime does not know the sizes of a row.
    full = op.shape((length, *row))
    rows = [op.Reshape(x, full, allowzero=1) for x in stacked]
    for x in rows:
        x.settle((length, *row))
    return [from_front(op, x, axis) for x in rows]


def _graph(
    op: Builder, inputs: Sequence[Tensor], before: Sequence[Tensor], following: list[Tensor], row: tuple[Size, ...]
) -> ir.Graph:
    """The states for the next round, and once more to be collected."""
    shown = [op.Identity(x) for x in following]
    for x in (*following, *shown):
        x.settle(row)
    for x in before:
        x.settle(())
    return ir.Graph(inputs, [*before, *following, *shown], nodes=op.scope.nodes, name=op.new_name("running"))


def _without(sizes: Sequence[Size], axis: int) -> tuple[Size, ...]:
    return tuple(size for i, size in enumerate(sizes) if i != axis)
