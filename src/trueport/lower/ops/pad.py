"""Padding. Torch counts amounts from the last axis backwards, a negative one cuts off, and any may be free."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import sympy

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

Amount = int | Number

_RUNTIME_HAS = frozenset(
    (
        *(ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BOOL),
        *(ir.DataType.INT8, ir.DataType.INT32, ir.DataType.INT64),
        *(ir.DataType.UINT8, ir.DataType.UINT32, ir.DataType.UINT64),
    )
)
"""Dtypes for which ONNX Runtime has a `Pad`; the others are padded in a wider one."""


@op("aten::pad")
def pad(op: Builder, self: Tensor, pad: Sequence[Amount], mode: str = "constant", value: Operand = None) -> Tensor:
    """pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor"""
    if mode == "constant":
        return constant_pad_nd(op, self, pad, 0 if value is None else value)
    if mode == "circular":
        return pad_circular(op, self, pad)
    return replication_pad(op, self, pad) if mode == "replicate" else reflection_pad(op, self, pad)


@op("aten::constant_pad_nd")
def constant_pad_nd(op: Builder, self: Tensor, pad: Sequence[Amount], value: Operand = 0) -> Tensor:
    """constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"""
    return _pad(op, self, pad, "constant", value)


@op("aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d")
def reflection_pad(op: Builder, self: Tensor, padding: Sequence[Amount]) -> Tensor:
    """reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor"""
    if _only_adds(op, padding):
        return _pad(op, self, padding, "reflect")

    def mirrored(index: Tensor, last: Tensor) -> Tensor:
        return op.Sub(last, op.Abs(op.Sub(last, op.Abs(index))))

    return _by_index(op, self, padding, mirrored)


@op("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d")
def replication_pad(op: Builder, self: Tensor, padding: Sequence[Amount]) -> Tensor:
    """replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor"""
    if _only_adds(op, padding):
        return _pad(op, self, padding, "edge")
    return _by_index(op, self, padding, lambda index, last: op.Min(op.Max(index, 0), last))


@op("aten::_pad_circular")
def pad_circular(op: Builder, self: Tensor, pad: Sequence[Amount]) -> Tensor:
    """_pad_circular(Tensor self, SymInt[] pad) -> Tensor

    By slices: ONNX has `wrap` only since opset 19, and ONNX Runtime refuses it for a batch of none.
    """
    out = self
    for place in range(0, len(pad), 2):
        axis = self.rank - 1 - place // 2
        before, after = (_expr(amount) for amount in pad[place : place + 2])
        if before == after == 0:
            continue
        length = self.known_sizes[axis]
        start, end = _most(0, -before), length - _most(0, -after)
        tail = _slice(op, out, axis, end - _most(0, before), end)
        head = _slice(op, out, axis, start, start + _most(0, after))
        out = op.Concat(tail, _slice(op, out, axis, start, end), head, axis=axis)
    return out


def _only_adds(op: Builder, pad: Sequence[Amount]) -> bool:
    return all(op.sizes.is_natural(sympy.sympify(_expr(amount))) for amount in pad)


def _by_index(op: Builder, x: Tensor, pad: Sequence[Amount], inside: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Each padded axis picks its elements; `inside` brings an index that lies outside back to 0 ... last.

    Eager takes elements from the whole axis, also from what a negative amount cuts off; ONNX's `Pad` cuts first.
    """
    for place in range(0, len(pad), 2):
        axis = x.rank - 1 - place // 2
        before, after = (_expr(amount) for amount in pad[place : place + 2])
        length = x.known_sizes[axis]
        index = op.Sub(op.range(length + before + after), op.size(before))
        sizes = (*x.known_sizes[:axis], length + before + after, *x.known_sizes[axis + 1 :])
        x = op.Gather(x, inside(index, op.size(length - 1)), axis=axis)
        x.settle(sizes)
    return x


def _pad(op: Builder, x: Tensor, pad: Sequence[Amount], mode: str, value: Operand = None) -> Tensor:
    dtype = x.element
    inner = dtype if dtype in _RUNTIME_HAS else ir.DataType.FLOAT if dtype.is_floating_point() else ir.DataType.INT32
    if isinstance(value, float) and not dtype.is_floating_point():
        value = int(value)
    filling = None if value is None else op.scalar(value, inner)
    return op.cast(op.Pad(op.cast(x, inner), _amounts(op, pad, x.rank), filling, mode=mode), dtype)


def _amounts(op: Builder, pad: Sequence[Amount], rank: int) -> Tensor:
    """ONNX's order: what comes before each axis, first axis first, then what comes after."""
    untouched = [0] * (rank - len(pad) // 2)
    before, after = list(pad[0::2])[::-1], list(pad[1::2])[::-1]
    return op.shape([*untouched, *before, *untouched, *after])


def _slice(op: Builder, x: Tensor, axis: int, start: Size, end: Size) -> Tensor:
    return op.Slice(x, op.shape([start]), op.shape([end]), op.ints(axis))


def _expr(amount: Amount) -> Size:
    return amount.expr if isinstance(amount, Number) else amount


def _most(one: Size, other: Size) -> Size:
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else sympy.Max(one, other)
