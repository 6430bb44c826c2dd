"""Models that were converted by `torch.ao.quantization`, traced on the floats that their whole numbers stand for.

A trace has no quantised tensors. What `quantize_per_tensor` gives is here a float tensor that was rounded to the grid
of its scale and zero point, and knows it; an operator on such tensors computes in floats and rounds to the grid of its
result, which is what the kernels of torch do in whole numbers. Weights are the whole numbers that the model holds.
Operators that are not written down here are refused: on floats they would leave the grid unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trueport.decompositions.arguments import flat
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.decompositions.registry import decomposes, sizes_of
from trueport.torch_internals import OpOverload, outside_all_modes, quantised_operators

aten = torch.ops.aten
_GRID = "_trueport_grid"
_LIMITS = {torch.quint8: (0, 255), torch.qint8: (-128, 127), torch.qint32: (-(2**31), 2**31 - 1)}


@dataclass(frozen=True)
class Grid:
    """The scale and the zero point that the numbers of a tensor share."""

    scale: Any
    zero_point: Any
    dtype: torch.dtype

    def rounded(self, x: Tensor) -> Tensor:
        lowest, highest = _LIMITS[self.dtype]
        rounded = torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero_point, lowest, highest)
        setattr(rounded, _GRID, self)
        return rounded


def grid_of(tensor: object) -> Grid | None:
    return getattr(tensor, _GRID, None)


def _quantize(x: Tensor, scale: Any, zero_point: Any, dtype: torch.dtype) -> Tensor:
    return Grid(scale, zero_point, dtype).rounded(x)


def _quantize_channels(x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
    rounded = torch.fake_quantize_per_channel_affine(x, scales.float(), zero_points.int(), axis, *_LIMITS[dtype])
    setattr(rounded, _GRID, Grid(scales, zero_points, dtype))
    return rounded


def _dequantize(x: Tensor) -> Tensor:
    return x.clone()


def _int_repr(x: Tensor) -> Tensor:
    grid = _required(x, "int_repr")
    storage = torch.uint8 if grid.dtype is torch.quint8 else torch.int8
    numbers: Tensor = (x / grid.scale).round() + grid.zero_point
    return numbers.to(storage)


def _required(x: Tensor, what: str) -> Grid:
    grid = grid_of(x)
    if grid is None:
        raise CannotBeCarried(
            f"`{what}` is called on a quantised tensor whose scale the trace has lost sight of",
            "quantise in this function, or export the model before it is converted",
        )
    return grid


def _weight_and_bias(packed: Any) -> tuple[Tensor, Tensor | None]:
    """The weight as whole numbers that are restored in the graph, and the bias."""
    with outside_all_modes():
        weight, bias = packed.unpack()
        numbers = weight.int_repr()
        if weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric):
            restore = quantised_operators().dequantize_per_channel
            scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points().long()
            grid: tuple[Any, ...] = (scales, zeros, weight.q_per_channel_axis())
        else:
            restore = quantised_operators().dequantize_per_tensor
            grid = (weight.q_scale(), weight.q_zero_point())
        bias = None if bias is None else bias.detach()
    return restore(numbers, *grid, -128, 127, torch.int8), bias


def _linear(activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def linear(x: Tensor, packed: Any, scale: float, zero_point: int) -> Tensor:
        weight, bias = _weight_and_bias(packed)
        return Grid(scale, zero_point, torch.quint8).rounded(activation(F.linear(x, weight, bias)))

    return linear


def _dynamic_linear(activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def linear(x: Tensor, packed: Any, reduce_range: bool = False) -> Tensor:
        weight, bias = _weight_and_bias(packed)
        return activation(F.linear(_rounded_to_its_range(x, 127 if reduce_range else 255), weight, bias))

    return linear


_SMALLEST_SCALE = 6.1e-5
"""Below it the kernels choose this one, and stretch the range about 0 alike."""


def _rounded_to_its_range(x: Tensor, highest: int) -> Tensor:
    """As the kernels choose the grid of each input: 0 is on it, and the lower end sets the zero point."""
    low, high = x.amin().clamp(max=0).float(), x.amax().clamp(min=0).float()
    scale = ((high.double() - low.double()) / highest).float()
    scale = torch.where((scale == 0) | (1 / scale).isinf(), 0.1, scale)
    smallest = torch.tensor(_SMALLEST_SCALE)
    stretched = torch.where(high == 0, -smallest * highest, low * (smallest / scale))
    low = torch.where(scale < smallest, stretched, low)
    scale = torch.maximum(scale, smallest).double()
    zero = (-low.double() / scale).clamp(0, highest).round()
    numbers = (x * (1 / scale).to(x.dtype)).round() + zero.to(x.dtype)
    return (numbers.clamp(0, highest) - zero.to(x.dtype)) * scale.to(x.dtype)


def _conv(rank: int, activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    convolution = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]

    def conv(x: Tensor, packed: Any, *settings: Any) -> Tensor:
        scale, zero_point = settings[-2:]
        weight, bias = _weight_and_bias(packed)
        with outside_all_modes():
            placing = [list(each()) for each in (packed.stride, packed.padding, packed.dilation)]
            groups = packed.groups()
        if rank == 1:  # packed as a convolution of pictures that are one line high
            weight, placing = weight.squeeze(2), [each[-1:] for each in placing]
        stride, padding, dilation = placing
        result = convolution(x, weight, bias, stride, padding, dilation, groups)
        return Grid(scale, zero_point, torch.quint8).rounded(activation(result))

    return conv


def _on_the_grid(name: str, compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Of one or two quantised tensors, onto the grid that is given behind them."""

    def computed(*given: Any) -> Tensor:
        *operands, scale, zero_point = given
        return Grid(scale, zero_point, _required(operands[0], name).dtype).rounded(compute(*operands))

    return computed


def _cat(tensors: list[Tensor], dim: int, scale: float | None = None, zero_point: int | None = None) -> Tensor:
    grid = _required(tensors[0], "quantized::cat")
    wanted = Grid(
        grid.scale if scale is None else scale, zero_point if scale is not None else grid.zero_point, grid.dtype
    )
    return wanted.rounded(torch.cat(tensors, dim))


def _same(x: Tensor) -> Tensor:
    return x


def _operators() -> dict[OpOverload, Callable[..., Any]]:
    quantized = torch.ops.quantized
    found: dict[OpOverload, Callable[..., Any]] = {
        aten.quantize_per_tensor.default: _quantize,
        aten.quantize_per_tensor.tensor_qparams: _quantize,
        aten.quantize_per_channel.default: _quantize_channels,
        aten.dequantize.self: _dequantize,
        aten.int_repr.default: _int_repr,
        quantized.linear.default: _linear(_same),
        quantized.linear_relu.default: _linear(torch.relu),
        quantized.linear_dynamic.default: _dynamic_linear(_same),
        quantized.linear_relu_dynamic.default: _dynamic_linear(torch.relu),
        quantized.add.default: _on_the_grid("quantized::add", torch.add),
        quantized.add_relu.default: _on_the_grid("quantized::add_relu", lambda a, b: torch.relu(a + b)),
        quantized.mul.default: _on_the_grid("quantized::mul", torch.mul),
        quantized.matmul.default: _on_the_grid("quantized::matmul", torch.matmul),
        quantized.hardswish.default: _on_the_grid("quantized::hardswish", F.hardswish),
        quantized.sigmoid.default: _on_the_grid("quantized::sigmoid", torch.sigmoid),
        quantized.cat.default: _cat,
        quantized.conv1d.default: _conv(1, _same),
        quantized.conv1d_relu.default: _conv(1, torch.relu),
        quantized.conv2d.new: _conv(2, _same),
        quantized.conv2d_relu.new: _conv(2, torch.relu),
        quantized.conv3d.new: _conv(3, _same),
        quantized.conv3d_relu.new: _conv(3, torch.relu),
    }
    return found


def _fused_observer(x: Tensor, observer_on: Tensor, fake_quant_on: Tensor, *rest: Any) -> Any:
    """_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min,
    Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min,
    int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False)"""
    _, _, scale, zero_point, _, lowest, highest, axis, by_channel, *_ = (*rest, False, False)
    if observer_on.item():
        raise CannotBeCarried(
            "an observer of the quantisation is still measuring here, and changes the model with every call",
            "model.apply(torch.ao.quantization.disable_observer)",
        )
    if not fake_quant_on.item():
        return x.clone()
    if by_channel:
        return torch.fake_quantize_per_channel_affine(x, scale, zero_point, axis, lowest, highest)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, lowest, highest)


def _fused_observer_helper(x: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    rounded = _fused_observer(x, *settings)
    return rounded, torch.ones_like(rounded, dtype=torch.bool)


@sizes_of(
    aten.fake_quantize_per_tensor_affine.default,
    aten.fake_quantize_per_tensor_affine.tensor_qparams,
    aten.fake_quantize_per_channel_affine.default,
    aten._fake_quantize_learnable_per_tensor_affine.default,
    aten._fake_quantize_learnable_per_channel_affine.default,
)
def _fake_quantized(self: Tensor, *_settings: Any) -> Tensor:
    """Torch asks a kernel that reads the scale."""
    return torch.empty_like(self)


QUANTISED: dict[OpOverload, Callable[..., Any]] = {
    **_operators(),
    aten.fused_moving_avg_obs_fake_quant.default: _fused_observer,
    aten._fused_moving_avg_obs_fq_helper.default: _fused_observer_helper,
}

for _op, _function in QUANTISED.items():
    decomposes(_op)(_function)

_KEEPS_THE_GRID = {
    *(aten.relu.default, aten.relu_.default, aten.clamp.default, aten.hardtanh.default, aten.clone.default),
    *(aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.permute.default, aten.transpose.int),
    *(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.contiguous.default),
    *(aten.max_pool2d.default, aten.max_pool1d.default, aten.select.int, aten.slice.Tensor, aten.dropout.default),
    *(aten.unflatten.int, aten.detach.default, aten.t.default, aten._unsafe_view.default, aten.expand.default),
    *(aten.chunk.default, aten.split.Tensor, aten.narrow.default, aten.alias.default, aten.cat.default),
}
_RETURNS_TO_THE_GRID = {
    *(aten.mean.dim, aten.mean.default, aten.avg_pool2d.default, aten.adaptive_avg_pool2d.default),
    *(aten.upsample_nearest2d.vec, aten.upsample_bilinear2d.vec, aten._adaptive_avg_pool2d.default),
}


def grid_among(args: Any) -> Grid | None:
    """The grid of the first quantised tensor among the first arguments of an operator."""
    first = args[0] if args else None
    for each in first if isinstance(first, (list, tuple)) else args[:2]:
        if (grid := grid_of(each)) is not None:
            return grid
    return None


def after(op: OpOverload, grid: Grid, returned: Any) -> Any:
    """What an operator that was given a quantised tensor gives."""
    if op in QUANTISED:
        return returned
    if op in _RETURNS_TO_THE_GRID:
        return grid.rounded(returned)
    if op in _KEEPS_THE_GRID:
        for each in flat(returned):
            setattr(each, _GRID, grid)
        return returned
    raise CannotBeCarried(
        f"`{op}` is not carried for quantised tensors",
        "dequantise before this line, or export the model before it is converted, with its fake quantisation",
    )
