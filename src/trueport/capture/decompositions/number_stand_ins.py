"""More torch functions that take plain numbers only, for a size or a number that is known when the model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from trueport.capture.decompositions.stand_ins import holds_symbol, stands_in_for


@stands_in_for(torch.Tensor.unfold)
def _unfold(input: torch.Tensor, dimension: int, size: Any, step: Any) -> torch.Tensor:
    """Overlapping pieces of an axis, their elements on a new last axis."""
    axis = dimension % input.dim()
    starts = torch.arange((input.shape[axis] - size) // step + 1) * step
    index = starts.unsqueeze(1) + torch.arange(size)
    taken = input.index_select(axis, index.flatten())
    pieces = taken.reshape((*input.shape[:axis], *index.shape, *input.shape[axis + 1 :]))
    return pieces.movedim(axis + 1, -1)


@stands_in_for(F.pixel_shuffle)
def _pixel_shuffle(input: torch.Tensor, upscale_factor: Any) -> torch.Tensor:
    """Channels become the points of a finer picture."""
    *lead, channels, height, width = input.shape
    times = upscale_factor
    fine = input.reshape((*lead, channels // (times * times), times, times, height, width))
    at = len(lead) + 1
    order = (*range(at), at + 2, at, at + 3, at + 1)
    return fine.permute(order).reshape((*lead, channels // (times * times), height * times, width * times))


@stands_in_for(F.pixel_unshuffle)
def _pixel_unshuffle(input: torch.Tensor, downscale_factor: Any) -> torch.Tensor:
    *lead, channels, height, width = input.shape
    times = downscale_factor
    coarse = input.reshape((*lead, channels, height // times, times, width // times, times))
    at = len(lead) + 1
    order = (*range(at), at + 1, at + 3, at, at + 2)
    return coarse.permute(order).reshape((*lead, channels * times * times, height // times, width // times))


@stands_in_for(F.leaky_relu)
def _leaky_relu(input: torch.Tensor, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    if inplace:
        return NotImplemented
    return torch.where(input > 0, input, input * negative_slope)


@stands_in_for(F.elu)
def _elu(input: torch.Tensor, alpha: Any = 1.0, inplace: bool = False) -> Any:
    if inplace:
        return NotImplemented
    return torch.where(input > 0, input, torch.expm1(input.clamp(max=0)) * alpha)


@stands_in_for(F.scaled_dot_product_attention)
def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Any:
    """A scale that is known only when the model runs is multiplied into the query."""
    if not holds_symbol(scale) or holds_symbol((dropout_p, is_causal)):
        return NotImplemented
    return F.scaled_dot_product_attention(
        query * scale, key, value, attn_mask, dropout_p, is_causal, scale=1.0, enable_gqa=enable_gqa
    )


def _fitted(transform: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Torch asks whether `n` is more or less than there is, and pads or cuts; padding and cutting does both."""

    def fitted(input: torch.Tensor, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
        if not holds_symbol(n):
            return NotImplemented
        axis = dim % input.dim()
        behind = input.dim() - 1 - axis
        missing = torch.sym_max(n - input.shape[axis], 0)
        padded = F.pad(input, (0, 0) * behind + (0, missing))
        return transform(padded.narrow(axis, 0, n), None, axis, norm)

    return fitted


for _transform in (torch.fft.fft, torch.fft.ifft, torch.fft.rfft):
    stands_in_for(_transform)(_fitted(_transform))
