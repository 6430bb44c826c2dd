"""Running totals along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from trueport.lower.builder import Builder
from trueport.lower.dtypes import torch_dtype
from trueport.lower.ops.axes import axis_of
from trueport.lower.ops.binary import logaddexp
from trueport.lower.ops.create import filled
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Step = Callable[[Builder, Tensor, Tensor], Tensor]


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
    return _running(op, op.cast(self, op.result.dtype), dim, 1, lambda op, total, x: op.Mul(total, x))


@op("aten::logcumsumexp")
def logcumsumexp(op: Builder, self: Tensor, dim: int) -> Tensor:
    """logcumsumexp(Tensor self, int dim) -> Tensor"""
    return _running(op, self, dim, float("-inf"), logaddexp)


@op("aten::cummax")
def cummax(op: Builder, self: Tensor, dim: int) -> Sequence[Tensor]:
    """cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"""
    return _extreme(op, self, dim, lambda op, x, best: op.GreaterOrEqual(x, best))


@op("aten::cummin")
def cummin(op: Builder, self: Tensor, dim: int) -> Sequence[Tensor]:
    """cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"""
    return _extreme(op, self, dim, lambda op, x, best: op.LessOrEqual(x, best))


def _running(op: Builder, x: Tensor, dim: int, start: float, step: Step) -> Tensor:
    """A `Scan`: ONNX has no other running total than the sum."""
    if not x.rank:
        return x
    axis = axis_of(dim, x.rank)
    row = tuple(size for i, size in enumerate(x.known_sizes) if i != axis)
    first = filled(op, row, start, torch_dtype(x.element))
    with op.inside():
        total, item = (Tensor(op, op.new_name(stem), x.element, row) for stem in ("total", "item"))
        following = step(op, total, item)
        following.settle(row)
        shown = op.Identity(following)
        shown.settle(row)
        body = ir.Graph([total, item], [following, shown], nodes=op.scope.nodes, name=op.new_name("running"))
    last, out = Tensor(op, op.new_name("last"), x.element, row), Tensor(op, op.new_name("Scan"), x.element)
    op.append("Scan", [first, x], _scan_attributes(body, 1, axis, 1), [last, out])
    return out


def _extreme(op: Builder, x: Tensor, dim: int, better: Step) -> Sequence[Tensor]:
    """The best so far with its place. Of equals the last, in eager."""
    if not x.rank:
        return x, op.const(0)
    axis = axis_of(dim, x.rank)
    length = x.known_sizes[axis]
    row = tuple(size for i, size in enumerate(x.known_sizes) if i != axis)
    first = op.Gather(x, op.const(0), axis=axis)
    place = filled(op, row, 0, torch.int64)
    with op.inside():
        best, at, item = (
            Tensor(op, op.new_name(stem), dtype, row)
            for stem, dtype in (("best", x.element), ("at", ir.DataType.INT64), ("item", x.element))
        )
        here = Tensor(op, op.new_name("here"), ir.DataType.INT64, ())
        wins = better(op, item, best)
        values, places = op.Where(wins, item, best), op.Where(wins, here, at)
        outs = [values, places, op.Identity(values), op.Identity(places)]
        for out in outs:
            out.settle(row)
        body = ir.Graph([best, at, item, here], outs, nodes=op.scope.nodes, name=op.new_name("running"))
    results = [
        Tensor(op, op.new_name(stem), dtype)
        for stem, dtype in (
            ("last", x.element),
            ("last", ir.DataType.INT64),
            ("Scan", x.element),
            ("Scan", ir.DataType.INT64),
        )
    ]
    attributes = [
        ir.AttrGraph("body", body),
        ir.AttrInt64("num_scan_inputs", 2),
        ir.AttrInt64s("scan_input_axes", [axis, 0]),
        ir.AttrInt64s("scan_output_axes", [axis, axis]),
    ]
    op.append("Scan", [first, place, x, op.range(length)], attributes, results)
    return results[2], results[3]


def _scan_attributes(body: ir.Graph, inputs: int, axis: int, outputs: int) -> list[ir.Attr]:
    return [
        ir.AttrGraph("body", body),
        ir.AttrInt64("num_scan_inputs", inputs),
        ir.AttrInt64s("scan_input_axes", [axis] * inputs),
        ir.AttrInt64s("scan_output_axes", [axis] * outputs),
    ]
