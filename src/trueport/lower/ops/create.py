"""Operators that make tensors out of sizes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

AnySize = int | Number
Scalar = bool | int | float | Number
DOUBLE, INT64 = ir.DataType.DOUBLE, ir.DataType.INT64


def filled(op: Builder, sizes: Sequence[Size], value: Operand, dtype: torch.dtype) -> Tensor:
    """A tensor of one number everywhere."""
    if not sizes:
        return op.scalar(value, dtype)
    wanted = onnx_dtype(dtype)
    if isinstance(value, Tensor | Number):
        out = op.Expand(op.scalar(value, wanted), op.shape(sizes))
    else:
        # ConstantOfShape of the runtime does not know bfloat16.
        made = ir.DataType.FLOAT if wanted == ir.DataType.BFLOAT16 else wanted
        content = ir.Tensor(np.array([value], dtype=made.numpy()), dtype=made)
        out = op.cast(op.ConstantOfShape(op.shape(sizes), value=content), wanted)
    out.settle(tuple(sizes))
    return out


@op("aten::full", "aten::new_full", "aten::full_like")
def full(op: Builder, *args: Any, fill_value: Scalar | None = None, **_options: Any) -> Tensor:
    """full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor; the value is given last."""
    value = args[-1] if fill_value is None else fill_value
    return filled(op, op.result.shape, value, op.result.dtype)


@op(
    "aten::zeros",
    "aten::zeros_like",
    "aten::new_zeros",
    "aten::empty.memory_format",
    "aten::empty_like",
    "aten::empty_permuted",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
)
def zeros(op: Builder, *_sizes: Any, **_options: Any) -> Tensor:
    """zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor; what `empty` holds is anybody's guess."""
    return filled(op, op.result.shape, 0, op.result.dtype)


@op("aten::ones", "aten::ones_like", "aten::new_ones")
def ones(op: Builder, *_sizes: Any, **_options: Any) -> Tensor:
    """ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return filled(op, op.result.shape, 1, op.result.dtype)


@op("aten::fill.Scalar", "aten::fill.Tensor")
def fill(op: Builder, self: Tensor, value: Operand) -> Tensor:
    """fill.Scalar(Tensor self, Scalar value) -> Tensor"""
    return filled(op, op.result.shape, value, op.result.dtype)


@op("aten::scalar_tensor")
def scalar_tensor(op: Builder, s: Scalar, **_options: Any) -> Tensor:
    """scalar_tensor(Scalar s, *, ScalarType? dtype=None, ...) -> Tensor"""
    return op.scalar(s, op.result.dtype)


@op("aten::arange")
def arange(op: Builder, end: Scalar, **_options: Any) -> Tensor:
    """arange(Scalar end, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _steps(op, 0, end, 1)


@op("aten::arange.start")
def arange_start(op: Builder, start: Scalar, end: Scalar, **_options: Any) -> Tensor:
    """arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _steps(op, start, end, 1)


@op("aten::arange.start_step")
def arange_start_step(op: Builder, start: Scalar, end: Scalar, step: Scalar = 1, **_options: Any) -> Tensor:
    """arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _steps(op, start, end, step)


def _steps(op: Builder, start: Scalar, end: Scalar, step: Scalar) -> Tensor:
    """Whole numbers by `Range`. Others as eager computes them, start + i * step in double precision, which `Range`
    would add up, and does not have for half precision at all.

    Where the result is of integers, eager cuts off what is behind the point first; all but int64 count their steps
    before that.
    """
    dtype = onnx_dtype(op.result.dtype)
    if dtype == INT64:
        start, end, step = (int(number) if isinstance(number, float) else number for number in (start, end, step))
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and max(abs(start), abs(end)) > 2**53:
        # The runtime counts the steps in double (faulty_kernels.py).
        return op.cast(op.Add(op.Mul(op.range(len(range(start, end, step))), step), start), dtype)
    if dtype == INT64 or all(_is_whole(number) for number in (start, end, step)):
        return op.cast(op.Range(op.scalar(start, INT64), op.scalar(end, INT64), op.scalar(step, INT64)), dtype)
    first, last, apart = (op.scalar(number, DOUBLE) for number in (start, end, step))
    length = op.cast(op.Ceil(op.Div(op.Sub(last, first), apart)), INT64)
    position = op.cast(op.Range(op.const(0), length, op.const(1)), DOUBLE)
    first, apart = _of_dtype(op, start), _of_dtype(op, step)
    return op.cast(op.Add(first, op.Mul(position, apart)), dtype)


def _of_dtype(op: Builder, number: Scalar) -> Tensor:
    """In double precision what is left of a number in the dtype of the result."""
    if op.result.dtype.is_floating_point:
        return op.scalar(number, DOUBLE)
    return op.cast(op.scalar(int(number) if isinstance(number, float) else number, INT64), DOUBLE)


def _is_whole(number: Scalar) -> bool:
    return number.kind is not float if isinstance(number, Number) else isinstance(number, int)


@op("aten::linspace")
def linspace(op: Builder, start: Scalar, end: Scalar, steps: AnySize, **_options: Any) -> Tensor:
    """linspace(Scalar start, Scalar end, SymInt steps, *, ScalarType? dtype=None, ...) -> Tensor

    From both ends towards the middle, as eager does, so that the last one is exactly `end`. A single one is `start`.
    """
    first, last = _of_dtype(op, start), _of_dtype(op, end)
    position = op.range(steps)
    rest = op.Sub(op.Sub(op.size(steps), 1), position)
    halfway = op.Max(op.Div(op.size(steps), 2), 1)
    gaps = op.Max(op.cast(op.Sub(op.size(steps), 1), DOUBLE), 1.0)
    step = op.Div(op.Sub(last, first), gaps)
    rising = op.Add(first, op.Mul(op.cast(position, DOUBLE), step))
    falling = op.Sub(last, op.Mul(op.cast(rest, DOUBLE), step))
    values = op.Where(op.Less(position, halfway), rising, falling)
    return op.cast(values, op.result.dtype)


@op("aten::eye", "aten::eye.m")
def eye(op: Builder, n: AnySize, m: AnySize | None = None, **_options: Any) -> Tensor:
    """eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, ...) -> Tensor"""
    rows = op.Unsqueeze(op.range(n), op.ints(1))
    return op.cast(op.Equal(rows, op.range(n if m is None else m)), op.result.dtype)


@op("aten::tril")
def tril(op: Builder, self: Tensor, diagonal: AnySize = 0) -> Tensor:
    """tril(Tensor self, SymInt diagonal=0) -> Tensor"""
    return op.Trilu(self, op.size(diagonal), upper=0)


@op("aten::triu")
def triu(op: Builder, self: Tensor, diagonal: AnySize = 0) -> Tensor:
    """triu(Tensor self, SymInt diagonal=0) -> Tensor"""
    return op.Trilu(self, op.size(diagonal), upper=1)
