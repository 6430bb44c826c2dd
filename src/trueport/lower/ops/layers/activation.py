"""Activations, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import torch

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.exact.precise import function, log1p
from trueport.lower.ops.axes import axis_of
from trueport.lower.ops.unary import expm1
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Scalar = int | float | Number
DOUBLE = ir.DataType.DOUBLE


@op("aten::relu")
def relu(op: Builder, self: Tensor) -> Tensor:
    """relu(Tensor self) -> Tensor"""
    return op.Relu(self) if self.element.is_floating_point() else op.Max(self, 0)


@op("aten::relu6")
def relu6(op: Builder, self: Tensor) -> Tensor:
    """relu6(Tensor self) -> Tensor"""
    return op.Clip(self, 0, 6)


@op("aten::leaky_relu")
def leaky_relu(op: Builder, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"""
    if self.dtype == DOUBLE:
        return op.Where(op.Less(self, 0), op.Mul(self, negative_slope), self)
    return op.LeakyRelu(self, alpha=negative_slope)


@op("aten::prelu", "aten::_prelu_kernel")
def prelu(op: Builder, self: Tensor, weight: Tensor) -> Tensor:
    """prelu(Tensor self, Tensor weight) -> Tensor; one slope for each channel, which is the second axis"""
    if weight.rank == 1 and self.rank > 2 and weight.known_sizes[0] != 1:
        weight = op.Unsqueeze(weight, op.ints(*range(1, self.rank - 1)))
    elif self.rank == 0:
        weight = op.reshape(weight, ())
    if self.dtype == DOUBLE:
        return op.Where(op.Less(self, 0), op.Mul(self, weight), self)
    return op.PRelu(self, weight)


@op("aten::elu")
def elu(op: Builder, self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"""
    if scale == 1 and input_scale == 1 and self.dtype != DOUBLE:
        return op.Elu(self, alpha=alpha)
    below = op.Mul(expm1(op, op.Mul(self, input_scale)), alpha)
    return op.Mul(op.Where(op.Greater(self, 0), self, below), scale)


@op("aten::celu")
def celu(op: Builder, self: Tensor, alpha: float = 1.0) -> Tensor:
    """celu(Tensor self, Scalar alpha=1.0) -> Tensor"""
    below = op.Mul(expm1(op, op.Div(op.Min(self, 0), alpha)), alpha)
    return op.Add(op.Max(self, 0), below)


@op("aten::selu")
def selu(op: Builder, self: Tensor) -> Tensor:
    """selu(Tensor self) -> Tensor"""
    if self.dtype == DOUBLE:
        return elu(op, self, 1.6732632423543772, 1.0507009873554805)
    return op.Selu(self)


@op("aten::silu")
def silu(op: Builder, self: Tensor) -> Tensor:
    """silu(Tensor self) -> Tensor"""
    return op.Mul(self, op.Sigmoid(self))


@op("aten::mish")
def mish(op: Builder, self: Tensor) -> Tensor:
    """mish(Tensor self) -> Tensor"""
    return op.Mul(self, op.Tanh(_softplus(op, self)))


def _softplus(op: Builder, x: Tensor) -> Tensor:
    """log(1 + exp(x)), from the larger side so that nothing overflows."""
    if x.dtype != DOUBLE:
        return op.Softplus(x)
    return op.Add(op.Max(x, 0), log1p(op, op.Exp(op.Neg(op.Abs(x)))))


@op("aten::softplus")
def softplus(op: Builder, self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor; above the threshold it is the input"""
    scaled = self if beta == 1 else op.Mul(self, beta)
    soft = _softplus(op, scaled) if beta == 1 else op.Div(_softplus(op, scaled), beta)
    return op.Where(op.Greater(scaled, threshold), self, soft)


@op("aten::log_sigmoid", "aten::log_sigmoid_forward")
def log_sigmoid(op: Builder, self: Tensor) -> Any:
    """log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)"""
    result = op.Sub(0, _softplus(op, op.Neg(self)))  # far above it is 0, not -0
    return (result, None) if op.node is not None and len(op.node.outputs) == 2 else result


@op("aten::hardsigmoid")
def hardsigmoid(op: Builder, self: Tensor) -> Tensor:
    """hardsigmoid(Tensor self) -> Tensor"""
    if self.dtype == DOUBLE:
        return op.Clip(op.Add(op.Div(self, 6), 0.5), 0, 1)
    return op.HardSigmoid(self, alpha=1 / 6, beta=0.5)


@op("aten::hardswish")
def hardswish(op: Builder, self: Tensor) -> Tensor:
    """hardswish(Tensor self) -> Tensor"""
    if self.dtype == DOUBLE:
        return op.Div(op.Mul(self, op.Clip(op.Add(self, 3), 0, 6)), 6)
    return op.HardSwish(self)


@op("aten::hardshrink")
def hardshrink(op: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    """hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"""
    return op.Where(op.LessOrEqual(op.Abs(self), lambd), op.const(0, self.element), self)


@op("aten::softshrink")
def softshrink(op: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    """softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"""
    return op.Add(op.Max(op.Sub(self, lambd), 0), op.Min(op.Add(self, lambd), 0))


@op("aten::threshold")
def threshold(op: Builder, self: Tensor, threshold: Scalar, value: Scalar) -> Tensor:
    """threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"""
    return op.Where(op.LessOrEqual(self, threshold), op.scalar(value, self.element), self)


@op("aten::glu")
def glu(op: Builder, self: Tensor, dim: int = -1) -> Tensor:
    """glu(Tensor self, int dim=-1) -> Tensor"""
    left, right = op.many("Split", 2, self, axis=axis_of(dim, self.rank), num_outputs=2)
    return op.Mul(left, op.Sigmoid(right))


@op("aten::gelu")
def gelu(op: Builder, self: Tensor, *, approximate: str = "none") -> Tensor:
    """gelu(Tensor self, *, str approximate="none") -> Tensor"""
    if op.opset >= 20 and self.dtype != DOUBLE:
        return op.Gelu(self, approximate=approximate)
    if approximate == "none":
        inner = function(op, "Erf", op.Mul(self, math.sqrt(0.5)))
    else:
        cube = op.Mul(op.Mul(self, self), self)
        inner = op.Tanh(op.Mul(op.Add(self, op.Mul(cube, 0.044715)), math.sqrt(2 / math.pi)))
    return op.Mul(op.Mul(self, 0.5), op.Add(inner, 1))


@op("aten::softmax.int", "aten::_softmax", "aten::special_softmax")
def softmax(op: Builder, self: Tensor, dim: int, dtype: torch.dtype | bool | None = None) -> Tensor:
    """softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"""
    return _along(op, "Softmax", self, dim)


@op("aten::log_softmax.int", "aten::_log_softmax", "aten::special_log_softmax")
def log_softmax(op: Builder, self: Tensor, dim: int, dtype: torch.dtype | bool | None = None) -> Tensor:
    """log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"""
    return _along(op, "LogSoftmax", self, dim)


def _along(op: Builder, name: str, self: Tensor, dim: int) -> Tensor:
    x = op.cast(self, op.result.dtype)
    if not x.rank:
        return op.reshape(getattr(op, name)(op.reshape(x, (1,)), axis=0), ())
    result: Tensor = getattr(op, name)(x, axis=axis_of(dim, x.rank))
    return result


@op("aten::_safe_softmax")
def safe_softmax(op: Builder, self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor; a row of -inf gives zeros, not NaN"""
    x = op.cast(self, op.result.dtype)
    top = op.ReduceMax(x, op.ints(axis_of(dim, x.rank)), keepdims=1)
    masked = op.IsInf(top, detect_positive=0)
    return op.Where(masked, op.const(0, x.element), op.Softmax(x, axis=axis_of(dim, x.rank)))
