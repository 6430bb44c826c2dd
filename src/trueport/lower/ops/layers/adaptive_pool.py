"""Pooling to a given size, whatever the size of the input: the windows follow from the two sizes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.ops.layers.windows import Windows, adaptive, element_counts, windowed_max, windowed_sum
from trueport.lower.ops.reduce import mean
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Sizes = Sequence[int | Number]

_RUNTIME_COMPARES = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT8, ir.DataType.UINT8)
)


@op(
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
)
def adaptive_avg_pool(op: Builder, self: Tensor, output_size: Sizes) -> Tensor:
    """adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor

    1. One window over everything is a mean.
    2. Windows that share the axis evenly are those of a plain pooling.
    3. Otherwise their bounds are computed.
    """
    rank = len(output_size)
    before, after = self.known_sizes[-rank:], op.result.shape[-rank:]
    if all(size == 1 for size in after):
        return mean(op, self, list(range(-rank, 0)), keepdim=True)
    kernel = _even_kernel(before, after)
    if kernel is not None and self.dtype == ir.DataType.FLOAT and self.rank == rank + 2:
        return op.AveragePool(self, kernel_shape=kernel, strides=kernel)
    windows = _windows(op, before, after)
    total = windowed_sum(op, self, windows)
    return op.cast(op.Div(total, element_counts(op, windows, total.element)), self.element)


@op("aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")
def adaptive_max_pool(op: Builder, self: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)"""
    rank = len(output_size)
    x = self if self.dtype in _RUNTIME_COMPARES else op.cast(self, ir.DataType.FLOAT)
    x.sizes = self.sizes
    values, places = windowed_max(op, x, _windows(op, self.known_sizes[-rank:], op.result.shape[-rank:]))
    return op.cast(values, self.element), places


def _even_kernel(before: Sequence[Size], after: Sequence[Size]) -> list[int] | None:
    kernel = [a // b for a, b in zip(before, after, strict=True) if isinstance(a, int) and isinstance(b, int) and b]
    even = len(kernel) == len(after) and all(k * b == a for k, a, b in zip(kernel, before, after, strict=True))
    return kernel if even else None


def _windows(op: Builder, before: Sequence[Size], after: Sequence[Size]) -> list[Windows]:
    return [adaptive(op, length, count) for length, count in zip(before, after, strict=True)]
