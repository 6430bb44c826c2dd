"""Convolutions of which a free size says how many groups there are, or how long the result is.

`F.conv2d(x.view(1, b * c, h, w), weight, groups=b)`, `self.up(x, output_size=skip.shape)`

So networks give each example of a batch weights of its own (StyleGAN's modulated convolution). ONNX has the number of
groups written down once, so here the windows are laid out as columns and multiplied, group by group, in one product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from trueport.decompositions.pooling import each_axis
from trueport.decompositions.registry import decomposes, holds_symbol

aten = torch.ops.aten


def _pair(value: Any, axes: int, missing: int) -> Any:
    """A setting of each axis of a picture, of which a line has but one."""
    return (*[missing] * (2 - axes), *each_axis(value, axes))


def _picture(tensor: torch.Tensor, axes: int) -> torch.Tensor:
    return tensor.unsqueeze(-2) if axes == 1 else tensor


def _forwards(axes: int) -> Callable[..., Any]:
    def convolve(
        input: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        if not holds_symbol(groups) or isinstance(padding, str) or input.dim() != axes + 2:
            return NotImplemented
        x, w = _picture(input, axes), _picture(weight, axes)
        steps, pads, gaps = _pair(stride, axes, 1), _pair(padding, axes, 0), _pair(dilation, axes, 1)
        batch, _, *sizes = x.shape
        kernel = tuple(w.shape[2:])
        each = x.reshape(batch * groups, w.shape[1], *sizes)
        columns = F.unfold(each, kernel, gaps, pads, steps)
        columns = columns.reshape(batch, groups, w.shape[1] * kernel[0] * kernel[1], columns.shape[-1])
        rows = w.reshape(groups, w.shape[0] // groups, w.shape[1] * kernel[0] * kernel[1])
        made = [
            (size + 2 * pad - gap * (k - 1) - 1) // step + 1
            for size, pad, gap, k, step in zip(sizes, pads, gaps, kernel, steps, strict=True)
        ]
        return _finished(rows @ columns, (batch, w.shape[0], *made), bias, axes)

    return convolve


def _backwards(axes: int) -> Callable[..., Any]:
    def convolve(
        input: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Any:
        if holds_symbol(output_padding) and not holds_symbol(groups):
            whole = _TRANSPOSED[axes - 1](input, weight, None, stride, 0, 0, groups, dilation)
            return _cut(whole, each_axis(padding, axes), each_axis(output_padding, axes), bias)
        if not holds_symbol(groups) or input.dim() != axes + 2 or axes > 2:
            return NotImplemented
        x, w = _picture(input, axes), _picture(weight, axes)
        steps, pads, gaps = _pair(stride, axes, 1), _pair(padding, axes, 0), _pair(dilation, axes, 1)
        extra = _pair(output_padding, axes, 0)
        batch, channels, *sizes = x.shape
        kernel = tuple(w.shape[2:])
        inner, outer = channels // groups, w.shape[1]
        each = x.reshape(batch, groups, inner, sizes[0] * sizes[1])
        rows = w.reshape(groups, inner, outer * kernel[0] * kernel[1]).transpose(-1, -2)
        columns = (rows @ each).reshape(batch * groups, outer * kernel[0] * kernel[1], sizes[0] * sizes[1])
        made = [
            (size - 1) * step - 2 * pad + gap * (k - 1) + more + 1
            for size, pad, gap, k, step, more in zip(sizes, pads, gaps, kernel, steps, extra, strict=True)
        ]
        return _finished(
            F.fold(columns, tuple(made), kernel, gaps, pads, steps), (batch, groups * outer, *made), bias, axes
        )

    return convolve


def _cut(whole: torch.Tensor, pads: list[Any], extra: list[Any], bias: torch.Tensor | None) -> torch.Tensor:
    """`output_size=x.size()`: how much longer the result is than it has to be only the run tells. Nothing is left off
    at first, and then what eager leaves off; where it asks for more than there is, only the bias reaches."""
    edges = [each for pad, more in zip(reversed(pads), reversed(extra), strict=True) for each in (-pad, more - pad)]
    made = F.pad(whole, edges)
    return made if bias is None else made + bias.reshape(-1, *[1] * len(pads))


def _finished(made: torch.Tensor, sizes: Sequence[Any], bias: torch.Tensor | None, axes: int) -> torch.Tensor:
    picture = made.reshape(tuple(sizes))
    if bias is not None:
        picture = picture + bias.reshape(-1, 1, 1)
    return picture.squeeze(-2) if axes == 1 else picture


_TRANSPOSED: tuple[Callable[..., torch.Tensor], ...] = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
for _axes, _there in ((1, F.conv1d), (2, F.conv2d)):
    decomposes(_there)(_forwards(_axes))
for _axes, _back in enumerate(_TRANSPOSED, 1):
    decomposes(_back)(_backwards(_axes))


@decomposes(aten.convolution_backward.default)
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


@decomposes(aten.col2im.default)
def _col2im(
    columns: torch.Tensor,
    output_size: Sequence[Any],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """ONNX has an operator for it, of which the runtime knows single precision only: others are added up by place."""
    if columns.dtype in (torch.float32, torch.float16, torch.bfloat16):
        return NotImplemented
    *lead, flat, _ = columns.shape
    height, width = (size + 2 * pad for size, pad in zip(output_size, padding, strict=True))
    rows, across = (
        (torch.arange(k) * gap).unsqueeze(1) + torch.arange((size - gap * (k - 1) - 1) // step + 1) * step
        for size, k, gap, step in zip((height, width), kernel_size, dilation, stride, strict=True)
    )
    place = rows[:, None, :, None] * width + across[None, :, None, :]
    sizes = (*lead, flat // (kernel_size[0] * kernel_size[1]))
    picture = columns.new_zeros((*sizes, height * width))
    picture = picture.index_add(-1, place.reshape(-1), columns.reshape((*sizes, place.numel())))
    top, left = padding
    return picture.reshape((*sizes, height, width))[..., top : height - top, left : width - left]
