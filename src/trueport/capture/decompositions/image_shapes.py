"""What the operators on images, sequences and volumes return: pooling, resizing, sampling at a grid.

Torch would answer by running their decompositions, which decides by sizes (is the input empty? is it twice as long?)
and takes seconds where sizes are symbols. See `shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from trueport.torch_internals import OpOverload

aten = torch.ops.aten
Sizes = Sequence[Any]
Pair = tuple[torch.Tensor, torch.Tensor]


def _windows(length: Any, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Any:
    """How many windows of a pooling fit; with `ceil_mode` none that starts in the padding after the end."""
    span = length + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    return torch.sym_min((span + stride - 1) // stride + 1, (length + padding + stride - 1) // stride)


def _each_axis(value: int | Sequence[int], rank: int) -> list[int]:
    """Torch takes one number for all axes."""
    if isinstance(value, int):
        return [value] * rank
    return [*value] if len(value) == rank else [*value] * rank


def _pooled(x: torch.Tensor, rank: int, *settings: Any, ceil_mode: bool) -> torch.Tensor:
    kernel, stride, padding, dilation = (_each_axis(setting, rank) for setting in settings)
    axes = zip(x.shape[-rank:], kernel, stride, padding, dilation, strict=True)
    return x.new_empty((*x.shape[:-rank], *(_windows(*of_axis, ceil_mode) for of_axis in axes)))


def _with_indices(values: torch.Tensor) -> Pair:
    return values, values.new_empty(values.shape, dtype=torch.int64)


def _max_pool(rank: int) -> Callable[..., torch.Tensor]:
    def pool(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> torch.Tensor:
        return _pooled(self, rank, kernel_size, stride or kernel_size, padding, dilation, ceil_mode=ceil_mode)

    return pool


def _max_pool_with_indices(rank: int) -> Callable[..., Pair]:
    pool = _max_pool(rank)
    return lambda self, *args, **kwargs: _with_indices(pool(self, *args, **kwargs))


def _avg_pool(rank: int) -> Callable[..., torch.Tensor]:
    def pool(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> torch.Tensor:
        return _pooled(self, rank, kernel_size, stride or kernel_size, padding, 1, ceil_mode=ceil_mode)

    return pool


def _adaptive_mean(self: torch.Tensor, output_size: Sizes) -> torch.Tensor:
    return self.new_empty((*self.shape[: -len(output_size)], *output_size))


def _adaptive_max(self: torch.Tensor, output_size: Sizes) -> Pair:
    return _with_indices(_adaptive_mean(self, output_size))


def _scaled(length: Any, scale: float) -> Any:
    return length * int(scale) if float(scale).is_integer() else torch.sym_int(length * scale)


def _resized(x: torch.Tensor, output_size: Sizes | None, scales: Sequence[float] | None) -> torch.Tensor:
    lengths = output_size or [_scaled(*of_axis) for of_axis in zip(x.shape[2:], scales or (), strict=True)]
    return x.new_empty((*x.shape[:2], *lengths))


def _nearest_vec(input: torch.Tensor, output_size: Sizes | None, scale_factors: Any) -> torch.Tensor:
    return _resized(input, output_size, scale_factors)


def _smooth_vec(
    input: torch.Tensor, output_size: Sizes | None, align_corners: bool, scale_factors: Any
) -> torch.Tensor:
    return _resized(input, output_size, scale_factors)


def _to_size(self: torch.Tensor, output_size: Sizes, *_settings: Any) -> torch.Tensor:
    return _resized(self, output_size, None)


def _grid_sampler(input: torch.Tensor, grid: torch.Tensor, *_settings: Any) -> torch.Tensor:
    return input.new_empty((*input.shape[:2], *grid.shape[1:-1]))


def _affine_grid(theta: torch.Tensor, size: Sizes, align_corners: bool) -> torch.Tensor:
    batch, _channels, *lengths = size
    return theta.new_empty((batch, *lengths, len(lengths)))


IMAGE_RESULTS: dict[OpOverload, Callable[..., Any]] = {
    aten.max_pool1d.default: _max_pool(1),
    aten.max_pool2d.default: _max_pool(2),
    aten.max_pool3d.default: _max_pool(3),
    aten.max_pool1d_with_indices.default: _max_pool_with_indices(1),
    aten.max_pool2d_with_indices.default: _max_pool_with_indices(2),
    aten.max_pool3d_with_indices.default: _max_pool_with_indices(3),
    aten.avg_pool1d.default: _avg_pool(1),
    aten.avg_pool2d.default: _avg_pool(2),
    aten.avg_pool3d.default: _avg_pool(3),
    aten.adaptive_avg_pool1d.default: _adaptive_mean,
    aten.adaptive_avg_pool2d.default: _adaptive_mean,
    aten.adaptive_avg_pool3d.default: _adaptive_mean,
    aten.adaptive_max_pool1d.default: _adaptive_max,
    aten.adaptive_max_pool2d.default: _adaptive_max,
    aten.adaptive_max_pool3d.default: _adaptive_max,
    aten.upsample_nearest1d.vec: _nearest_vec,
    aten.upsample_nearest2d.vec: _nearest_vec,
    aten.upsample_nearest3d.vec: _nearest_vec,
    aten._upsample_nearest_exact1d.vec: _nearest_vec,
    aten._upsample_nearest_exact2d.vec: _nearest_vec,
    aten._upsample_nearest_exact3d.vec: _nearest_vec,
    aten.upsample_linear1d.vec: _smooth_vec,
    aten.upsample_bilinear2d.vec: _smooth_vec,
    aten.upsample_trilinear3d.vec: _smooth_vec,
    aten.upsample_bicubic2d.vec: _smooth_vec,
    aten._upsample_bilinear2d_aa.vec: _smooth_vec,
    aten._upsample_bicubic2d_aa.vec: _smooth_vec,
    aten._upsample_bilinear2d_aa.default: _to_size,
    aten._upsample_bicubic2d_aa.default: _to_size,
    aten.grid_sampler.default: _grid_sampler,
    aten.affine_grid_generator.default: _affine_grid,
}
