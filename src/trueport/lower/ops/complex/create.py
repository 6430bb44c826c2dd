"""New complex tensors: filled, drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.complex.numbers import Complex, complex_op
from trueport.lower.ops.complex.complexes import Operand
from trueport.lower.ops.create import filled
from trueport.lower.tensor import Tensor


@complex_op(
    *(f"aten::{name}" for name in ("zeros", "zeros_like", "new_zeros", "zero", "empty", "empty_like", "new_empty")),
    "aten::empty_strided",
    "aten::new_empty_strided",
    "aten::empty.memory_format",
)
def zeros(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return filled_with(op, 0)


@complex_op("aten::ones", "aten::ones_like", "aten::new_ones")
def ones(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return filled_with(op, 1)


@complex_op("aten::full", "aten::full_like", "aten::new_full")
def full(op: Builder, *args: Any, fill_value: Operand | None = None, **_options: Any) -> Complex:
    """full(SymInt[] size, Scalar fill_value, *, ...) -> Tensor"""
    return filled_with(op, args[-1] if fill_value is None else fill_value)


@complex_op("aten::scalar_tensor")
def scalar_tensor(op: Builder, s: Operand, **_options: Any) -> Complex:
    """scalar_tensor(Scalar s, *, ...) -> Tensor"""
    return filled_with(op, s)


def filled_with(op: Builder, value: Any) -> Complex:
    dtype = op.result.dtype.to_real()
    parts = (value.real, value.imag) if isinstance(value, complex) else (value, 0)
    return Complex.joined(op, *(filled(op, op.result.shape, part, dtype) for part in parts))


@complex_op("aten::randn", "aten::randn_like")
def randn(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """randn(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor: of variance 1, half of it in each part"""
    return _drawn(op, op.RandomNormalLike, scale=math.sqrt(0.5))


@complex_op("aten::rand", "aten::rand_like")
def rand(op: Builder, *_sizes: Any, **_options: Any) -> Complex:
    """rand(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return _drawn(op, op.RandomUniformLike)


def _drawn(op: Builder, draw: Callable[..., Tensor], **options: float) -> Complex:
    like = op.Expand(op.const(0.0), op.shape([*op.result.shape, 2]))
    return Complex(op.cast(draw(like, dtype=int(ir.DataType.FLOAT), **options), op.result.dtype.to_real()))
