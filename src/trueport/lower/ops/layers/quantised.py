"""Quantisation: `QuantizeLinear` and `DequantizeLinear`, which runtimes look for to compute in whole numbers.

They hold 8 bits. What has another width, or is not single precision, is the same arithmetic in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch

from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

FLOAT, INT8, UINT8 = ir.DataType.FLOAT, ir.DataType.INT8, ir.DataType.UINT8


@dataclass(frozen=True)
class _Grid:
    """The whole numbers that stand for floats: float = (number - zero point) * scale; per channel along an axis."""

    scale: Operand
    zero_point: Operand
    lowest: int | Tensor
    highest: int | Tensor
    axis: int | None = None

    @property
    def storage(self) -> ir.DataType | None:
        """The 8-bit dtype that holds the numbers, if one does."""
        if isinstance(self.lowest, Tensor) or isinstance(self.highest, Tensor):
            return None
        if -128 <= self.lowest < 0 and self.highest <= 127:
            return INT8
        return UINT8 if self.lowest >= 0 and self.highest <= 255 else None

    def onto(self, op: Builder, x: Tensor, storage: ir.DataType) -> Tensor:
        numbers = op.QuantizeLinear(x, self._scale(op), self._zero(op, storage), axis=self.axis)
        limits = (-128, 127) if storage == INT8 else (0, 255)
        if (self.lowest, self.highest) == limits:
            return numbers
        return op.Clip(numbers, op.scalar(self.lowest, storage), op.scalar(self.highest, storage))

    def back(self, op: Builder, numbers: Tensor, storage: ir.DataType) -> Tensor:
        return op.DequantizeLinear(numbers, self._scale(op), self._zero(op, storage), axis=self.axis)

    def in_floats(self, op: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers, as floats, and what they stand for."""
        scale, zero = (self._along(op, op.scalar(each, x.element), x.rank) for each in (self.scale, self.zero_point))
        moved = op.Add(op.Round(op.Div(x, scale)), zero)
        numbers = op.Clip(moved, op.scalar(self.lowest, x.element), op.scalar(self.highest, x.element))
        return numbers, op.Mul(op.Sub(numbers, zero), scale)

    def _scale(self, op: Builder) -> Tensor:
        return self._fitting(op, op.scalar(self.scale, FLOAT))

    def _zero(self, op: Builder, storage: ir.DataType) -> Tensor:
        return self._fitting(op, op.scalar(self.zero_point, storage))

    def _fitting(self, op: Builder, x: Tensor) -> Tensor:
        """ONNX wants one number where there is no axis, and a vector where there is."""
        return op.Reshape(x, op.ints()) if self.axis is None and x.sizes not in ((), None) else x

    def _along(self, op: Builder, x: Tensor, rank: int) -> Tensor:
        if self.axis is None:
            return self._fitting(op, x)
        return op.Reshape(x, op.ints(*(-1 if i == self.axis % rank else 1 for i in range(rank))))


def _there_and_back(op: Builder, x: Tensor, grid: _Grid) -> Tensor:
    storage = grid.storage
    if storage is None or x.element != FLOAT:
        return grid.in_floats(op, x)[1]
    return grid.back(op, grid.onto(op, x, storage), storage)


@op(
    "aten::fake_quantize_per_tensor_affine",
    "aten::fake_quantize_per_tensor_affine.tensor_qparams",
    "aten::_fake_quantize_learnable_per_tensor_affine",
)
def fake_quantize(
    op: Builder,
    self: Tensor,
    scale: Operand,
    zero_point: Operand,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max)"""
    return _there_and_back(op, self, _Grid(scale, zero_point, quant_min, quant_max))


@op("aten::fake_quantize_per_channel_affine", "aten::_fake_quantize_learnable_per_channel_affine")
def fake_quantize_channels(
    op: Builder,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min,
    int quant_max) -> Tensor"""
    return _there_and_back(op, self, _Grid(scale, zero_point, quant_min, quant_max, axis))


@op(*(f"quantized_decomposed::quantize_per_tensor{form}" for form in ("", ".tensor", ".tensor2")))
def quantize(
    op: Builder,
    input: Tensor,
    scale: Operand,
    zero_point: Operand,
    quant_min: int | Tensor,
    quant_max: int | Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype)"""
    return _numbers(op, input, _Grid(scale, zero_point, quant_min, quant_max))


@op("quantized_decomposed::quantize_per_channel")
def quantize_channels(
    op: Builder,
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Tensor:
    """quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max,
    ScalarType dtype) -> Tensor"""
    return _numbers(op, input, _Grid(scales, zero_points, quant_min, quant_max, axis))


def _numbers(op: Builder, x: Tensor, grid: _Grid) -> Tensor:
    storage = grid.storage
    if storage is None or x.element != FLOAT:
        return grid.in_floats(op, x)[0]
    return grid.onto(op, x, storage)


@op(*(f"quantized_decomposed::dequantize_per_tensor{form}" for form in ("", ".tensor", ".tensor2")))
def dequantize(
    op: Builder,
    input: Tensor,
    scale: Operand,
    zero_point: Operand,
    quant_min: int | Tensor,
    quant_max: int | Tensor,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype,
    *, ScalarType? out_dtype=None) -> Tensor"""
    return _floats(op, input, _Grid(scale, zero_point, quant_min, quant_max))


@op("quantized_decomposed::dequantize_per_channel")
def dequantize_channels(
    op: Builder,
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max,
    ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor"""
    zeros = op.Mul(op.cast(scales, FLOAT), 0.0) if zero_points is None else zero_points
    return _floats(op, input, _Grid(scales, zeros, quant_min, quant_max, axis))


def _floats(op: Builder, numbers: Tensor, grid: _Grid) -> Tensor:
    if numbers.element in (INT8, UINT8):
        return grid.back(op, numbers, numbers.element)
    x = op.cast(numbers, FLOAT)
    x.settle(numbers.sizes)
    scale, zero = (grid._along(op, op.scalar(each, FLOAT), x.rank) for each in (grid.scale, grid.zero_point))
    return op.Mul(op.Sub(x, zero), scale)


@op("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(
    op: Builder, input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> Sequence[Tensor]:
    """choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype)
    -> (Tensor, Tensor)"""
    low = op.Min(op.ReduceMin(input, keepdims=0), op.const(0, input.element))
    high = op.Max(op.ReduceMax(input, keepdims=0), op.const(0, input.element))
    scale = op.Max(op.Div(op.Sub(high, low), quant_max - quant_min), op.const(eps, input.element))
    zero = op.Sub(quant_min, op.Round(op.Div(low, scale)))
    clipped = op.Clip(zero, op.const(quant_min, input.element), op.const(quant_max, input.element))
    return op.Reshape(scale, op.ints(1)), op.Reshape(clipped, op.ints(1))


@op("aten::_int_mm")
def int_mm(op: Builder, self: Tensor, mat2: Tensor) -> Tensor:
    """_int_mm(Tensor self, Tensor mat2) -> Tensor: 8-bit numbers, added up in 32 bits"""
    return op.MatMulInteger(self, mat2)
