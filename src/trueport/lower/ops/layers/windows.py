"""Windows over axes of any length, picked by index: what no pooling operator of ONNX can say.

An axis is seen through windows, each from its start to before its end. `Gather` with a table of indices
[windows, longest window] lays them out on an axis of their own, where they are summed or compared. The places of the
table that lie behind the end of a window repeat its last element, which a maximum does not mind; sums leave them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.tensor import Tensor

_HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Windows:
    """Windows over one axis: `start` and `end` are int64 tensors of shape [windows]. Of each, every `step`-th element
    counts."""

    start: Tensor
    end: Tensor
    step: int = 1

    def lengths(self, op: Builder) -> Tensor:
        apart = op.Sub(self.end, self.start)
        return apart if self.step == 1 else op.Div(op.Add(apart, self.step - 1), self.step)

    def table(self, op: Builder) -> tuple[Tensor, Tensor]:
        """Indices into the axis, and which of them lie inside their window; both [windows, longest]."""
        lengths = self.lengths(op)
        steps = op.Range(op.const(0), op.ReduceMax(lengths, keepdims=0), op.const(1))
        index = op.Add(op.Unsqueeze(self.start, op.ints(1)), self.strided(op, steps))
        end = op.Unsqueeze(self.end, op.ints(1))
        last = op.Sub(end, 1)
        if self.step != 1:
            last = op.Unsqueeze(op.Add(self.start, self.strided(op, op.Sub(lengths, 1))), op.ints(1))
        return op.Max(op.Min(index, last), 0), op.Less(index, end)

    def strided(self, op: Builder, places: Tensor) -> Tensor:
        """How far from the start of its window an element is."""
        return places if self.step == 1 else op.Mul(places, self.step)

    def within(self, op: Builder, length: Size) -> Windows:
        """The part of each window that is not padding; none has less than no elements."""
        start = op.Max(self.start, 0)
        if self.step != 1:
            start = op.Where(op.Less(self.start, 0), op.Mod(self.start, self.step), self.start)
        return Windows(start, op.Max(op.Min(self.end, op.size(length)), start), self.step)


def adaptive(op: Builder, length: Size, count: Size) -> Windows:
    """From `floor(i * length / count)` to `ceil((i + 1) * length / count)`."""
    place, size, parts = op.range(count), op.size(length), op.size(count)
    start = op.Div(op.Mul(place, size), parts)
    end = op.Div(op.Add(op.Mul(op.Add(place, 1), size), op.Sub(parts, 1)), parts)
    return Windows(start, end)


def sliding(
    op: Builder, length: Size, count: Size, kernel: int, stride: int, padding: int, dilation: int = 1
) -> Windows:
    """One each `stride`, padding included. The last may not fit in: it ends where the padding ends."""
    start = op.Sub(op.Mul(op.range(count), stride), padding)
    reach = (kernel - 1) * dilation + 1
    return Windows(start, op.Min(op.Add(start, reach), op.size(length + padding)), dilation)


def windowed_sum(op: Builder, x: Tensor, windows: Sequence[Windows]) -> Tensor:
    """The sums over windows of the last axes; of half-precision elements in float32, as eager does."""
    rank = x.rank
    x = op.cast(x, ir.DataType.FLOAT) if x.dtype in _HALF else x
    floats = x.element.is_floating_point()
    for i, of_axis in enumerate(windows):
        axis = rank - len(windows) + i
        index, inside = of_axis.table(op)
        laid_out = op.Gather(x, index, axis=axis)
        trailing = op.ints(*range(2, rank - axis + 1))
        kept = op.Where(op.Unsqueeze(inside, trailing), laid_out, op.const(0, x.element))
        x = op.ReduceSum(kept, op.ints(axis + 1), keepdims=0) if floats else _sum_of_integers(op, kept, axis + 1, rank)
    return x


def _sum_of_integers(op: Builder, x: Tensor, axis: int, rank: int) -> Tensor:
    """Without an axis of x, which has one more than `rank`. The runtime's ReduceSum adds in double (faulty_kernels.py);
    a product with ones is exact."""
    moved = op.Transpose(x, perm=[*(i for i in range(rank + 1) if i != axis), axis])
    ones = op.Expand(op.const(1, x.element), op.Concat(op.Shape(x, start=axis, end=axis + 1), op.ints(1), axis=0))
    return op.Squeeze(op.MatMul(moved, ones), op.ints(rank))


def windowed_max(op: Builder, x: Tensor, windows: Sequence[Windows]) -> tuple[Tensor, Tensor]:
    """The maxima over windows of the last axes, and where they are, counted through these axes.

    From the last axis to the first, so that of equal elements the first one in memory wins, as in eager.
    """
    rank, sizes = x.rank, x.known_sizes
    place: Tensor | None = None
    inner: Size = 1
    for i, of_axis in reversed(list(enumerate(windows))):
        axis = rank - len(windows) + i
        index, _ = of_axis.table(op)
        laid_out = op.Gather(x, index, axis=axis)
        best = op.ArgMax(laid_out, axis=axis + 1, keepdims=1)
        start = op.Unsqueeze(of_axis.start, op.ints(*range(1, rank - axis + 1)))
        here = op.Mul(op.Add(of_axis.strided(op, best), start), op.size(inner))
        if place is not None:
            here = op.Add(here, op.GatherElements(op.Gather(place, index, axis=axis), best, axis=axis + 1))
        place = op.Squeeze(here, op.ints(axis + 1))
        x = op.ReduceMax(laid_out, op.ints(axis + 1), keepdims=0)
        inner = inner * sizes[axis]
    assert place is not None
    return x, place


def element_counts(op: Builder, windows: Sequence[Windows], dtype: ir.DataType) -> Tensor:
    """How many elements each window has, in the shape of the last axes."""
    lengths = [
        op.Unsqueeze(of_axis.lengths(op), op.ints(*range(1, len(windows) - i)))
        if i < len(windows) - 1
        else of_axis.lengths(op)
        for i, of_axis in enumerate(windows)
    ]
    return op.cast(reduce(op.Mul, lengths), dtype)
