"""Torch's own layers whose eager inference a trace cannot follow, run for the time of the trace by an equal one.

In inference, attention layers take a fast path in C++ that differs from their Python code in more than speed:

1. `nn.TransformerEncoder` drops the padding of a batch that is padded at the end (a nested tensor) and puts zeros there
   afterwards; a batch that is padded elsewhere goes the ordinary way.
2. `nn.TransformerEncoderLayer` reads any mask, also one of numbers to be added, as "nonzero is masked".
3. In both, and in `nn.MultiheadAttention`, a row with every key masked gives NaN; the ordinary way gives zeros where no
   attention weights are asked for.
4. `nn.TransformerEncoder` and `nn.TransformerDecoder` compare the mask with a causal one, to be faster if it is. What
   they compute is the same either way, so the mask is not looked at.
5. `nn.LSTM`, `nn.GRU` and `nn.RNN` read the size of a packed batch as a plain number (`packed.py`).

Eager inference is the reference, so each is written here with ordinary operators. The conditions are torch's own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from trueport.capture.decompositions.packed import recurrent

Forward = Callable[..., Any]


@contextlib.contextmanager
def adapted(model: nn.Module) -> Iterator[None]:
    """For its duration the layers of `model`, called on this thread, do with ordinary operators what eager does."""
    adaptations = _Adaptations(threading.get_ident())
    changed: list[dict[str, Any]] = []
    for module in model.modules():
        for kind, forward in (
            (nn.TransformerEncoder, adaptations.encoder),
            (nn.TransformerEncoderLayer, adaptations.layer),
            (nn.TransformerDecoder, adaptations.decoder),
            (nn.MultiheadAttention, adaptations.attention),
            (nn.LSTM, recurrent),
            (nn.GRU, recurrent),
            (nn.RNN, recurrent),
        ):
            # A subclass with a forward of its own decides for itself, and so does an object that was given one.
            if isinstance(module, kind) and type(module).forward is kind.forward and "forward" not in vars(module):
                vars(module)["forward"] = functools.partial(adaptations.on_this_thread, forward, kind.forward, module)
                changed.append(vars(module))
    try:
        yield
    finally:
        for attributes in changed:
            attributes.pop("forward", None)


class _Adaptations:
    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._in_fast_layer = False

    def on_this_thread(self, ours: Forward, theirs: Forward, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return (ours if threading.get_ident() == self._thread else theirs)(module, *args, **kwargs)

    def encoder(
        self,
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

    def decoder(
        self,
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

    def layer(
        self,
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
        before, self._in_fast_layer = self._in_fast_layer, True
        try:
            return forward(module, src, mask, padding, is_causal and mask is not None)
        finally:
            self._in_fast_layer = before

    def attention(
        self,
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
        in_fast_layer, self._in_fast_layer = self._in_fast_layer, False
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
