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


def _bilinear(
    one: torch.Tensor, other: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Two matrix products; torch's own way broadcasts a batch that may be empty, which the runtime does not."""
    outputs, width, other_width = weight.shape
    table = weight.permute(1, 0, 2).reshape(width, outputs * other_width)
    inner = torch.mm(one.reshape(-1, width), table).reshape(*one.shape[:-1], outputs, other_width)
    found = (inner * other.unsqueeze(-2)).sum(-1)
    return found if bias is None else found + bias


def _one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> Any:
    """As many classes as the largest number asks for, where no number of them is given."""
    if isinstance(num_classes, int) and num_classes == -1:
        if tensor.numel() == 0:
            return NotImplemented
        num_classes = tensor.max().item() + 1
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


def _pdist(tensor: torch.Tensor, p: float = 2) -> Any:
    """The distances of all pairs, the first of the pair varying slowest."""
    first, second = torch.ones(tensor.shape[0], tensor.shape[0]).triu(1).nonzero().unbind(1)
    return torch.linalg.vector_norm(tensor[first] - tensor[second], p, -1)


def _segment_reduce(
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Each segment against each row: whether the row lies in it."""
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        assert lengths is not None
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    row = torch.arange(data.shape[axis])
    inside = (row >= starts.unsqueeze(-1)) & (row < ends.unsqueeze(-1))
    inside = inside.reshape(*inside.shape, *[1] * (data.dim() - axis - 1))
    neutral = {"max": -torch.inf, "min": torch.inf, "prod": 1.0}.get(reduce, 0.0)
    rows = torch.where(inside, data.unsqueeze(axis), torch.full((), neutral, dtype=data.dtype))
    if reduce == "max":
        found = rows.amax(axis + 1)
        return found if initial is None else found.clamp(min=initial)
    if reduce == "min":
        found = rows.amin(axis + 1)
        return found if initial is None else found.clamp(max=initial)
    if reduce == "prod":
        return rows.prod(axis + 1) * (1.0 if initial is None else initial)
    total = rows.sum(axis + 1) + (0.0 if initial is None else initial)
    if reduce == "sum":
        return total
    count = (ends - starts).reshape(*ends.shape, *[1] * (data.dim() - axis - 1)).to(data.dtype)
    mean = total / count
    return mean if initial is None else torch.where(count > 0, mean, initial)


def _weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a vector, each number has a norm of its own; torch's definition sums over no axes, and so over all."""
    norms = v.abs() if v.dim() == 1 else torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


def _convolution_backward(
    grad: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """Where forward takes derivatives (forces, saliency): of the input, the convolution that goes back, as far as the
    input went; of the weight, the windows that met it times what came back."""
    settings = list(stride), list(padding), list(dilation)
    if transposed or len({*map(len, settings), weight.dim() - 2}) != 1 or (output_mask[1] and weight.dim() != 4):
        return NotImplemented
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        steps, pads, gaps = settings
        back = torch.convolution(grad, weight, None, steps, [0] * len(pads), gaps, True, [0] * len(pads), groups)
        missing = [size - (made - pad) for size, made, pad in zip(input.shape[2:], back.shape[2:], pads, strict=True)]
        edges = zip(reversed(pads), reversed(missing), strict=True)
        of_input = F.pad(back, [each for pad, more in edges for each in (-pad, more)])
    if output_mask[1]:
        windows = F.unfold(input, tuple(weight.shape[2:]), dilation, padding, stride)  # type: ignore[arg-type]
        parts = [
            g.flatten(2).transpose(0, 1).flatten(1) @ x.transpose(1, 2).flatten(0, 1)
            for x, g in zip(windows.chunk(groups, 1), grad.chunk(groups, 1), strict=True)
        ]
        of_weight = torch.cat(parts).reshape(weight.shape)
    if output_mask[2]:
        of_bias = grad.sum([0, *range(2, grad.dim())])
    return of_input, of_weight, of_bias


LAYERS: dict[OpOverload, Callable[..., Any]] = {
    aten.fractional_max_pool2d.default: _fractional_max_pool2d,
    aten.fractional_max_pool3d.default: _fractional_max_pool3d,
    aten.convolution_backward.default: _convolution_backward,
    aten._weight_norm_interface.default: _weight_norm,
    aten._pdist_forward.default: _pdist,
    aten.bilinear.default: _bilinear,
    aten.one_hot.default: _one_hot,
    aten.rrelu.default: _rrelu,
    aten.rrelu_with_noise.default: _rrelu_with_noise,
    aten.segment_reduce.default: _segment_reduce,
}
