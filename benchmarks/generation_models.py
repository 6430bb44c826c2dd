"""Architectures of `transformers` that generate, small and with random weights; nothing is downloaded."""

from __future__ import annotations

import importlib
from typing import Any

import torch

transformers: Any = importlib.import_module("transformers")
VOCABULARY, POSITIONS, WINDOW, FRAMES = 1000, 1024, 16, 64
SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": POSITIONS,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 2}
UNPLACED = {key: value for key, value in SMALL.items() if key != "max_position_embeddings"}
SPEECH_AND_TEXT = {
    "vocab_size": VOCABULARY, "d_model": 256, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 8,
    "decoder_attention_heads": 8, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "decoder_start_token_id": 2,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 32,
    "short_factor": [1.0 + 0.02 * i for i in range(16)], "long_factor": [2.0 + 0.2 * i for i in range(16)],
}  # fmt: skip

CONFIGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": WINDOW}),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 32}),
    "Gemma 3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        {**GROUPED, "head_dim": 32, "sliding_window": WINDOW,
         "layer_types": [*["sliding_attention"] * 3, "full_attention"]},
    ),
    "Phi-3": (
        "Phi3ForCausalLM",
        "Phi3Config",
        {**GROUPED, "original_max_position_embeddings": 32, "rope_parameters": LONGROPE},
    ),
    "GPT-2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": VOCABULARY, "n_positions": POSITIONS, "n_embd": 256, "n_layer": 4, "n_head": 8,
         "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
    ),
    "OPT": ("OPTForCausalLM", "OPTConfig", {**SMALL, "ffn_dim": 512, "word_embed_proj_dim": 256}),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "DeepSeek-V3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {**SMALL, "num_key_value_heads": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2,
         "topk_group": 1, "moe_intermediate_size": 128, "n_shared_experts": 1, "first_k_dense_replace": 1,
         "kv_lora_rank": 32, "q_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 32},
    ),
    "Mamba 2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {"vocab_size": VOCABULARY, "hidden_size": 256, "num_hidden_layers": 4, "num_heads": 16, "head_dim": 32,
         "state_size": 32, "n_groups": 1, "expand": 2, "chunk_size": 32, "bos_token_id": 1, "eos_token_id": 2,
         "pad_token_id": 0},
    ),
    "Mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 256, "num_hidden_layers": 4, "state_size": 16, "bos_token_id": 1,
         "eos_token_id": 2, "pad_token_id": 0},
    ),
    "LFM2": (
        "Lfm2ForCausalLM",
        "Lfm2Config",
        {**GROUPED, "layer_types": ["conv", "full_attention", "conv", "full_attention"], "conv_L_cache": 3},
    ),
    "Qwen3-Next": (
        "Qwen3NextForCausalLM",
        "Qwen3NextConfig",
        {**GROUPED, "num_hidden_layers": 2, "head_dim": 32, "layer_types": ["linear_attention", "full_attention"],
         "linear_conv_kernel_dim": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
         "linear_num_key_heads": 4, "linear_num_value_heads": 8, "num_experts": 4, "num_experts_per_tok": 2,
         "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "decoder_sparse_step": 1},
    ),
    "RecurrentGemma": (
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        {**UNPLACED, "num_key_value_heads": 1, "lru_width": 256, "attention_window_size": 64,
         "block_types": ["recurrent", "recurrent", "attention"]},
    ),
    "T5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 256, "d_kv": 32, "d_ff": 512, "num_layers": 4, "num_heads": 8,
         "decoder_start_token_id": 0},
    ),
    "BART": (
        "BartForConditionalGeneration",
        "BartConfig",
        {**SPEECH_AND_TEXT, "max_position_embeddings": POSITIONS, "forced_eos_token_id": None},
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {**SPEECH_AND_TEXT, "num_mel_bins": 16, "max_source_positions": FRAMES, "max_target_positions": POSITIONS,
         "suppress_tokens": None, "begin_suppress_tokens": None},
    ),
    "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 32, "sliding_window": WINDOW}),
    "Qwen2-MoE": (
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
         "shared_expert_intermediate_size": 128},
    ),
    "Cohere 2": ("Cohere2ForCausalLM", "Cohere2Config", {**GROUPED, "sliding_window": WINDOW}),
    "StableLM": ("StableLmForCausalLM", "StableLmConfig", GROUPED),
    "Falcon (ALiBi)": ("FalconForCausalLM", "FalconConfig", {**UNPLACED, "alibi": True}),
    "Bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 256, "n_layer": 4, "n_head": 8},
    ),
    "MPT": (
        "MptForCausalLM",
        "MptConfig",
        {"vocab_size": VOCABULARY, "d_model": 256, "n_layers": 4, "n_heads": 8, "max_seq_len": POSITIONS},
    ),
    "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL),
    "Phi": ("PhiForCausalLM", "PhiConfig", SMALL),
    "Granite": ("GraniteForCausalLM", "GraniteConfig", GROUPED),
    "OLMo 2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "Starcoder 2": ("Starcoder2ForCausalLM", "Starcoder2Config", {**GROUPED, "sliding_window": WINDOW}),
    "GPT-OSS": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GROUPED, "head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": WINDOW},
    ),
    "Llama 4": (
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        {**GROUPED, "head_dim": 32, "num_local_experts": 2, "num_experts_per_tok": 1, "intermediate_size_mlp": 256,
         "attention_chunk_size": WINDOW},
    ),
    "Jamba": (
        "JambaForCausalLM",
        "JambaConfig",
        {**GROUPED, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
         "expert_layer_offset": 1, "num_experts": 4, "num_experts_per_tok": 2, "mamba_d_state": 16,
         "use_mamba_kernels": False},
    ),
    "Bamba": (
        "BambaForCausalLM",
        "BambaConfig",
        {**GROUPED, "num_hidden_layers": 2, "attn_layer_indices": [1], "mamba_n_heads": 16, "mamba_d_head": 32,
         "mamba_d_state": 16, "mamba_chunk_size": 16},
    ),
    "mBART": (
        "MBartForConditionalGeneration",
        "MBartConfig",
        {**SPEECH_AND_TEXT, "max_position_embeddings": POSITIONS, "forced_eos_token_id": None},
    ),
    "Pegasus": (
        "PegasusForConditionalGeneration",
        "PegasusConfig",
        {**SPEECH_AND_TEXT, "max_position_embeddings": POSITIONS, "forced_eos_token_id": None},
    ),
    "Marian": (
        "MarianMTModel",
        "MarianConfig",
        {**SPEECH_AND_TEXT, "max_position_embeddings": POSITIONS, "forced_eos_token_id": None,
         "decoder_vocab_size": VOCABULARY},
    ),
    "Moonshine": (
        "MoonshineForConditionalGeneration",
        "MoonshineConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 256, "intermediate_size": 512, "encoder_num_hidden_layers": 2,
         "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 8, "decoder_num_attention_heads": 8,
         "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
    ),
}  # fmt: skip

SPEECH = {"Whisper": ("input_features", (3, 16, 2 * FRAMES)), "Moonshine": ("input_values", (3, 3200))}
"""What goes in besides text."""


def made(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """The model, and what `generate()` is given besides text. Weights are such that the logits lie apart."""
    kind, config, settings = CONFIGS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**settings)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    if name not in SPEECH:
        return model, {}
    port, shape = SPEECH[name]
    return model, {port: torch.randn(shape)}
