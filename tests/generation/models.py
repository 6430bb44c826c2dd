"""Models of transformers that are small, random and made here: nothing is downloaded."""

from __future__ import annotations

import importlib
from typing import Any

import torch

VOCABULARY = 99
TINY = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


def transformers() -> Any:
    return importlib.import_module("transformers")


def made(config: Any, kind: str) -> Any:
    """With weights large enough that the logits lie apart."""
    torch.manual_seed(0)
    model = getattr(transformers(), kind)(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def llama(**more: Any) -> Any:
    return made(transformers().LlamaConfig(**TINY, **more), "LlamaForCausalLM")


def mistral(window: int) -> Any:
    return made(transformers().MistralConfig(**TINY, sliding_window=window), "MistralForCausalLM")


def t5() -> Any:
    config = transformers().T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return made(config, "T5ForConditionalGeneration")


def mamba() -> Any:
    config = transformers().MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, state_size=4, expand=2, conv_kernel=3
    )
    return made(config, "MambaForCausalLM")


def phi3() -> Any:
    """Whose rotary embedding changes after 12 tokens."""
    rope = {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 12, "factor": 2.0,
        "short_factor": [1.0, 1.1], "long_factor": [2.0, 4.0],
    }  # fmt: skip
    config = transformers().Phi3Config(
        **TINY,
        original_max_position_embeddings=12,
        rope_parameters=rope,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return made(config, "Phi3ForCausalLM")
