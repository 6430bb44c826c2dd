"""Sampling at the places that a grid says (optical flow, spatial transformers)."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from trueport.graph.regions import Number, Size
from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")
_FAR = 100.0
"""In half pictures: outside of any neighbourhood from which a border pixel is sampled."""
_RUNTIME_SAMPLES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@op("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler(
    op: Builder, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)

    1. A place far outside the picture is its border to eager, and nothing to the runtime, whose integers overflow: it
       is brought nearer first.
    2. Where a place is not a number (a grid divided by `width - 1`, of a width that is 1) or infinite, eager's weights
       are not numbers either, and the nearest pixel is outside; the runtime takes a pixel. So they are made so, where
       sizes are free.
    """
    inner = input.element if input.dtype in _RUNTIME_SAMPLES else ir.DataType.FLOAT
    mode, padding = _MODES[interpolation_mode], _PADDINGS[padding_mode]
    places = op.cast(grid, inner)
    free = not all(isinstance(size, int) for size in (*input.known_sizes, *grid.known_sizes))
    near = op.Clip(places, op.const(-_FAR, inner), op.const(_FAR, inner)) if padding == "border" else places
    if free and mode == "nearest" and padding == "zeros":
        near = op.Where(op.Equal(op.Mul(places, 0), 0), places, op.const(_FAR, inner))
    sampled = op.GridSample(
        op.cast(input, inner), near, mode=mode, padding_mode=padding, align_corners=int(align_corners)
    )
    if free and mode != "nearest" and (padding == "zeros" or mode == "cubic"):
        # Counted from the front: of an empty tensor the runtime does not reduce an axis that is counted from the end.
        nowhere = op.ReduceSum(op.Mul(places, 0), op.ints(grid.rank - 1), keepdims=0)
        sampled = op.Add(sampled, op.Unsqueeze(nowhere, op.ints(1)))
    return op.cast(sampled, input.element)


@op("aten::affine_grid_generator")
def affine_grid_generator(op: Builder, theta: Tensor, size: Sequence[int | Number], align_corners: bool) -> Tensor:
    """affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor

    The pixels of an image [batch, channels, ..., height, width] as (x, y, ..., 1), transformed by theta.
    """
    lengths = op.result.shape[1:-1]
    rank = len(lengths)
    lines: list[Tensor] = []
    for i, length in enumerate(lengths):
        line = _coordinates(op, length, align_corners, theta.element)
        lines.insert(0, op.expand(op.reshape(line, [length if i == j else 1 for j in range(rank)]), lengths))
    lines.append(op.expand(op.const(1, theta.element), lengths))
    pixels = op.reshape(op.Concat(*(op.Unsqueeze(line, op.ints(-1)) for line in lines), axis=-1), (-1, rank + 1))
    moved = op.MatMul(pixels, op.Transpose(theta, perm=[0, 2, 1]))
    return op.reshape(moved, op.result.shape)


def _coordinates(op: Builder, length: Size, align_corners: bool, dtype: ir.DataType) -> Tensor:
    """The pixels of an axis between -1 and 1: their centres, or the first and the last at the ends."""
    place, count = op.cast(op.range(length), dtype), op.cast(op.size(length), dtype)
    doubled = op.Sub(op.Add(op.Mul(place, 2), 1), count)
    line = op.Div(doubled, op.Max(op.Sub(count, 1), 1) if align_corners else count)
    line.settle((length,))
    return line
