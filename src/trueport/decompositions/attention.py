"""Attention: the layers whose eager inference a trace cannot follow, and the operator.

In inference, the layers take a fast path in C++ that differs from their Python code in more than speed:

1. `nn.TransformerEncoder` drops the padding of a batch that is padded at the end (a nested tensor) and puts zeros there
   afterwards; a batch that is padded elsewhere goes the ordinary way.
2. `nn.TransformerEncoderLayer` reads any mask, also one of numbers to be added, as "nonzero is masked".
3. In both, and in `nn.MultiheadAttention`, a row with every key masked gives NaN; the ordinary way gives zeros where no
   attention weights are asked for.
4. `nn.TransformerEncoder` and `nn.TransformerDecoder` compare the mask with a causal one, to be faster if it is. What
   they compute is the same either way, so the mask is not looked at.

Eager inference is the reference, so each is written here with ordinary operators. The conditions are torch's own.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueport.decompositions.registry import decomposes, holds_symbol, sizes_of
from trueport.torch_internals.symbolic import has_hint

aten = torch.ops.aten
_IN_FAST_LAYER = ContextVar("_IN_FAST_LAYER", default=False)
"""Whether the attention that is called next belongs to a layer that takes its fast path."""


@decomposes(nn.TransformerEncoder)
def _encoder(
    module: nn.TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    if src_key_padding_mask is None or mask is not None or not _nests(module, src):
        return nn.TransformerEncoder.forward(module, src, mask, src_key_padding_mask, bool(is_causal))
    kept = ~_is_masked(src_key_padding_mask)
    kept_first = torch.arange(kept.shape[1]) < kept.sum(1, keepdim=True)
    if getattr(module, "mask_check", True):
        at_the_end = (kept == kept_first).all()
    else:
        kept, at_the_end = kept_first, torch.tensor(True)
    output = src
    for layer in module.layers:
        output = layer(output, src_key_padding_mask=~kept)
    output = torch.where((at_the_end & ~kept).unsqueeze(-1), torch.zeros((), dtype=output.dtype), output)
    return output if module.norm is None else module.norm(output)


@decomposes(nn.TransformerDecoder)
def _decoder(
    module: nn.TransformerDecoder,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    tgt_key_padding_mask: Tensor | None = None,
    memory_key_padding_mask: Tensor | None = None,
    tgt_is_causal: bool | None = None,
    memory_is_causal: bool = False,
) -> Tensor:
    masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    return nn.TransformerDecoder.forward(module, tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)


@decomposes(nn.TransformerEncoderLayer)
def _layer(
    module: nn.TransformerEncoderLayer,
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    forward = nn.TransformerEncoderLayer.forward
    if (src_mask is None and src_key_padding_mask is None) or not _layer_is_fast(module, src):
        return forward(module, src, src_mask, src_key_padding_mask, is_causal)
    mask = None if src_mask is None else _is_masked(src_mask)
    padding = None if src_key_padding_mask is None else _is_masked(src_key_padding_mask)
    before = _IN_FAST_LAYER.set(True)
    try:
        return forward(module, src, mask, padding, is_causal and mask is not None)
    finally:
        _IN_FAST_LAYER.reset(before)


@decomposes(nn.MultiheadAttention)
def _attention(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    masks = [mask for mask in (key_padding_mask, attn_mask) if mask is not None]
    in_fast_layer = _IN_FAST_LAYER.get()
    _IN_FAST_LAYER.set(False)
    fast = in_fast_layer or (
        query is key is value
        and not any(mask.is_floating_point() for mask in masks)
        and _attention_is_fast(module, query)
    )
    # Where the weights are asked for, the ordinary way is a plain softmax, too.
    plainly = bool(masks) and fast and not need_weights
    output, weights = nn.MultiheadAttention.forward(
        module,
        query,
        key,
        value,
        key_padding_mask=key_padding_mask,
        need_weights=need_weights or plainly,
        attn_mask=attn_mask,
        average_attn_weights=average_attn_weights,
        is_causal=is_causal,
    )
    return output, None if plainly else weights


def _is_masked(mask: Tensor) -> Tensor:
    return mask if mask.dtype is torch.bool else mask != 0


def _nests(module: nn.TransformerEncoder, src: Tensor) -> bool:
    return bool(getattr(module, "use_nested_tensor", False)) and _layer_is_fast(module.layers[0], src)


def _layer_is_fast(layer: Any, src: Tensor) -> bool:
    return (
        _attention_is_fast(layer.self_attn, src)
        and not layer.training
        and layer.self_attn.in_proj_bias is not None
        and bool(layer.activation_relu_or_gelu)
        and layer.norm1.eps == layer.norm2.eps
        and not any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules())
    )


def _attention_is_fast(attention: Any, query: Tensor) -> bool:
    weights = (attention.in_proj_weight, attention.in_proj_bias)
    return (
        torch.backends.mha.get_fastpath_enabled()
        and query.dim() == 3
        and all(weight is not None and weight.dtype == query.dtype for weight in weights)
        and not attention.training
        and attention.num_heads % 2 == 0
        and attention.batch_first
        and attention.bias_k is None
        and attention.bias_v is None
        and not attention.add_zero_attn
        and attention._qkv_same_embed_dim
        and not torch.is_autocast_enabled()
        and not torch.is_grad_enabled()
    )


@decomposes(F.scaled_dot_product_attention)
def _by_traced_scale(
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


@sizes_of(aten.scaled_dot_product_attention.default)
def _attention_sizes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    *settings: Any,
    **options: Any,
) -> torch.Tensor:
    """Torch's kernel does not look whether there is a value for each key, and reads beyond the end otherwise. It does
    look whether a mask fits. Neither can be told of sizes that only the run tells, nor changes the result's."""
    sizes = (*query.shape, *key.shape, *value.shape, *(() if attn_mask is None else attn_mask.shape))
    if any(isinstance(size, torch.SymInt) and not has_hint(size) for size in sizes):
        attn_mask, value = None, value.new_empty((*key.shape[:-1], value.shape[-1]))
    elif key.shape[-2] != value.shape[-2]:
        raise ValueError(f"attention over {key.shape[-2]} keys and {value.shape[-2]} values")
    result: torch.Tensor = aten.scaled_dot_product_attention.default(query, key, value, attn_mask, *settings, **options)
    return result
