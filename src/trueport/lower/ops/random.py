"""Random numbers: the model stays random. What it draws is not what eager draws, only from the same distribution."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from trueport.capture.graph import Number
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

AnySize = int | Number
FLOAT = ir.DataType.FLOAT


def _drawn(op: Builder, name: str, **options: float) -> Tensor:
    """Numbers for every place of the result. The runtime draws in single precision."""
    like = op.Expand(op.const(0.0, FLOAT), op.shape(op.result.shape))
    emit = op.RandomUniformLike if name == "uniform" else op.RandomNormalLike
    return emit(like, dtype=int(FLOAT), **options)


@op("aten::rand", "aten::rand_like")
def rand(op: Builder, *_sizes: Any, **_options: Any) -> Tensor:
    """rand(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return op.cast(_drawn(op, "uniform"), op.result.dtype)


@op("aten::randn", "aten::randn_like")
def randn(op: Builder, *_sizes: Any, **_options: Any) -> Tensor:
    """randn(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return op.cast(_drawn(op, "normal"), op.result.dtype)


@op("aten::uniform")
def uniform(op: Builder, self: Tensor, low: float = 0.0, high: float = 1.0, **_options: Any) -> Tensor:
    """uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor"""
    return op.cast(_drawn(op, "uniform", low=low, high=high), op.result.dtype)


@op("aten::normal_functional")
def normal(op: Builder, self: Tensor, mean: float = 0.0, std: float = 1.0, **_options: Any) -> Tensor:
    """normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor"""
    return op.cast(_drawn(op, "normal", mean=mean, scale=std), op.result.dtype)


@op("aten::randint.low", "aten::randint_like.low_dtype")
def randint_low(op: Builder, *args: Any, **_options: Any) -> Tensor:
    """randint.low(SymInt low, SymInt high, SymInt[] size, *, ...); randint_like.low_dtype(Tensor, SymInt, SymInt)"""
    low, high = args[1:3] if isinstance(args[0], Tensor) else args[:2]
    return _whole(op, low, high)


@op("aten::randint", "aten::randint_like")
def randint(op: Builder, *args: Any, **_options: Any) -> Tensor:
    """randint(SymInt high, SymInt[] size, *, ...); randint_like(Tensor self, SymInt high, *, ...)"""
    return _whole(op, 0, args[1] if isinstance(args[0], Tensor) else args[0])


def _whole(op: Builder, low: AnySize, high: AnySize) -> Tensor:
    first = op.scalar(low, FLOAT)
    span = op.Sub(op.scalar(high, FLOAT), first)
    drawn = op.Floor(op.Add(op.Mul(_drawn(op, "uniform"), span), first))
    return op.cast(op.cast(drawn, ir.DataType.INT64), op.result.dtype)


@op("aten::bernoulli", "aten::bernoulli.p")
def bernoulli(op: Builder, self: Tensor, p: Operand = None, **_options: Any) -> Tensor:
    """bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"""
    chance = op.cast(self, FLOAT) if p is None else op.scalar(p, FLOAT)
    return op.cast(op.Less(_drawn(op, "uniform"), chance), op.result.dtype)


@op("aten::multinomial")
def multinomial(
    op: Builder, self: Tensor, num_samples: int, replacement: bool = False, *, generator: object = None
) -> Tensor:
    """multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor

    Without replacement: the largest of the logarithms, each with noise of the right kind (Gumbel) added.
    """
    weights = self if self.rank == 2 else op.Unsqueeze(self, op.ints(0))
    logits = op.Log(op.cast(weights, FLOAT))
    if replacement:
        drawn = op.Multinomial(logits, sample_size=num_samples, dtype=int(onnx_dtype(op.result.dtype)))
    else:
        noise = op.RandomUniformLike(logits, dtype=int(FLOAT), low=1e-20)
        gumbel = op.Neg(op.Log(op.Neg(op.Log(noise))))
        drawn = op.many("TopK", 2, op.Add(logits, gumbel), op.shape([num_samples]), axis=1)[1]
    return drawn if self.rank == 2 else op.Squeeze(drawn, op.ints(0))
