"""Pooling over sliding windows. ONNX counts a batch axis and a channel axis; torch does without the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.ops.layers.windows import element_counts, sliding, windowed_max, windowed_sum
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

Ints = Sequence[int]

_MAX_POOLS = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT8, ir.DataType.UINT8)
)
"""Dtypes that ONNX Runtime takes the maximum of in windows."""
_AVERAGE_POOLS = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16))


def each_axis(value: Ints, rank: int) -> list[int]:
    """Torch takes one number for all axes."""
    return [*value] if len(value) == rank else [*value] * rank


def _register(rank: int) -> None:
    """The operators of one, two or three axes."""

    @op(f"aten::max_pool{rank}d")
    def max_pool(
        op: Builder,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        dilation: Ints = (1,),
        ceil_mode: bool = False,
    ) -> Tensor:
        """max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
        bool ceil_mode=False) -> Tensor
        """
        settings = _settings(rank, kernel_size, stride, padding, ceil_mode)
        (values,) = _max_pool(op, self, rank, 1, dilations=each_axis(dilation, rank), **settings)
        return values

    @op(f"aten::max_pool{rank}d_with_indices")
    def max_pool_with_indices(
        op: Builder,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        dilation: Ints = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """max_pool2d_with_indices: as max_pool2d -> (Tensor, Tensor)

        ONNX counts through the whole tensor, torch starts again in each channel.
        """
        settings = _settings(rank, kernel_size, stride, padding, ceil_mode)
        values, places = _max_pool(op, self, rank, 2, dilations=each_axis(dilation, rank), **settings)
        return values, op.Mod(places, op.size(math.prod(self.known_sizes[-rank:])))

    @op(f"aten::avg_pool{rank}d")
    def avg_pool(
        op: Builder,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False,
        bool count_include_pad=True, int? divisor_override=None) -> Tensor
        """
        settings = _settings(rank, kernel_size, stride, padding, ceil_mode)
        if self.dtype in _AVERAGE_POOLS and not (divisor_override and ceil_mode):
            counted = count_include_pad or divisor_override is not None
            (mean,) = _batched(
                op, self, rank, lambda x: op.many("AveragePool", 1, x, count_include_pad=counted, **settings)
            )
            scale = 1.0 if divisor_override is None else math.prod(each_axis(kernel_size, rank)) / divisor_override
            return mean if scale == 1 else op.Mul(mean, scale)
        axes = zip(
            self.known_sizes[-rank:],
            op.result.shape[-rank:],
            each_axis(kernel_size, rank),
            each_axis(stride or kernel_size, rank),
            each_axis(padding, rank),
            strict=True,
        )
        windows = [sliding(op, *of_axis) for of_axis in axes]
        inside = [w.within(op, length) for w, length in zip(windows, self.known_sizes[-rank:], strict=True)]
        total = windowed_sum(op, self, inside)
        if divisor_override is not None:
            return op.Div(total, divisor_override)
        return op.Div(total, element_counts(op, windows if count_include_pad else inside, total.element))

    @op(f"aten::max_unpool{rank}d")
    def max_unpool(op: Builder, self: Tensor, indices: Tensor, output_size: Sequence[int], *_steps: Ints) -> Tensor:
        """max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor"""
        sizes = op.result.shape
        lead = sizes[:-rank]
        blank = op.expand(op.const(0, self.element), (*lead, math.prod(sizes[-rank:])))
        flat = (*lead, math.prod(self.known_sizes[-rank:]))
        full = op.ScatterElements(blank, op.reshape(indices, flat), op.reshape(self, flat), axis=len(lead))
        return op.reshape(full, sizes)


for _rank in (1, 2, 3):
    _register(_rank)


def _settings(rank: int, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool) -> dict[str, list[int] | int]:
    """ONNX's attributes."""
    return {
        "kernel_shape": each_axis(kernel, rank),
        "strides": each_axis(stride or kernel, rank),
        "pads": each_axis(padding, rank) * 2,
        "ceil_mode": int(ceil_mode),
    }


def _max_pool(op: Builder, x: Tensor, rank: int, outputs: int, **settings: Any) -> tuple[Tensor, ...]:
    """The maxima and, if two outputs are asked for, where they are. Narrow integers are exact in float64; of int64 the
    windows are laid out."""
    inner = x.element
    if inner == ir.DataType.INT64:
        names = ("kernel_shape", "strides", "pads", "dilations")
        axes = zip(x.known_sizes[-rank:], op.result.shape[-rank:], *(settings[name] for name in names), strict=False)
        windows = [sliding(op, length, *of_axis).within(op, length) for length, *of_axis in axes]
        return windowed_max(op, x, windows)[:outputs]
    if inner not in _MAX_POOLS:
        inner = ir.DataType.FLOAT if inner.is_floating_point() else ir.DataType.DOUBLE
    found = _batched(op, op.cast(x, inner), rank, lambda x: op.many("MaxPool", outputs, x, **settings))
    return op.cast(found[0], x.element), *found[1:]


def _batched(op: Builder, x: Tensor, rank: int, pool: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    if x.rank == rank + 2:
        return pool(x)
    return tuple(op.Squeeze(out, op.ints(0)) for out in pool(op.Unsqueeze(x, op.ints(0))))
