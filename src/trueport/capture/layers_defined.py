"""Layers for which ONNX has no operator, said by other operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.torch_internals import OpOverload

aten = torch.ops.aten


def _fractional_max_pool2d(
    tensor: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The samples speak of the width first."""
    return _fractional_max_pool(tensor, kernel_size, output_size, samples.flip(-1))


def _fractional_max_pool3d(
    tensor: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    return _fractional_max_pool(tensor, kernel_size, output_size, samples)


def _fractional_max_pool(
    tensor: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows whose distance is a fraction: where each begins depends on one sample per picture, channel and axis."""
    axes = len(kernel_size)
    picture = tensor if tensor.dim() == axes + 2 else tensor.unsqueeze(0)
    batch, channels, *sizes = picture.shape
    place: Any = 0
    for axis, (kernel, out, size) in enumerate(zip(kernel_size, output_size, sizes, strict=True)):
        starts = _interval_starts(samples[:, :, axis], size, out, kernel)
        rows = starts.unsqueeze(-1) + torch.arange(kernel)  # [batch, channels, out, kernel]
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = out, kernel
        place = place * size + rows.reshape(batch, channels, *shape)
    window = 1
    for kernel in kernel_size:
        window *= kernel
    flat = place.reshape(batch, channels, -1)
    read = picture.reshape(batch, channels, -1).gather(2, flat).reshape(batch, channels, *output_size, window)
    values, best = read.max(-1)
    indices = place.reshape(batch, channels, *output_size, window).gather(-1, best.unsqueeze(-1)).squeeze(-1)
    if picture is not tensor:
        return values.squeeze(0), indices.squeeze(0)
    return values, indices


def _interval_starts(sample: torch.Tensor, size: int, out: int, kernel: int) -> torch.Tensor:
    """Torch's pseudo-random sequence; the last window ends where the picture does."""
    last = torch.full((*sample.shape, 1), size - kernel, dtype=torch.int64)
    if out == 1:
        return last
    gap = (size - kernel) / (out - 1)
    first = sample.unsqueeze(-1)
    starts = ((torch.arange(out - 1) + first) * gap).to(torch.int64) - (first * gap).to(torch.int64)
    return torch.cat([starts, last], -1)


def _rrelu(
    tensor: torch.Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """Below zero, a slope of its own for each element while training, else the one in the middle."""
    if not training:
        return F.leaky_relu(tensor, (lower + upper) / 2)
    slope = torch.rand_like(tensor) * (upper - lower) + lower
    return torch.where(tensor < 0, tensor * slope, tensor)


def _rrelu_with_noise(tensor: torch.Tensor, noise: torch.Tensor, *settings: Any, **options: Any) -> Any:
    return _rrelu(tensor, *settings, **options)


LAYERS: dict[OpOverload, Callable[..., Any]] = {
    aten.fractional_max_pool2d.default: _fractional_max_pool2d,
    aten.fractional_max_pool3d.default: _fractional_max_pool3d,
    aten.rrelu.default: _rrelu,
    aten.rrelu_with_noise.default: _rrelu_with_noise,
}
