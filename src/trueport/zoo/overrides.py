"""What the general way gets wrong, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueport.zoo.plans import CallPlan, TensorPlan

FORECAST = {"prediction_length": 4, "context_length": 8, "num_time_features": 1}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "cvt": {"depth": (1, 2, 3)},  # the rate of a stage is looked up among those of its blocks
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},  # said once more than the number of layers
    "granite_speech5_ctc": {"encoder_config": {"context_size": 16}},  # at most the number of positions
    "granite_speech5_encoder": {"context_size": 16},
    "blip-2": {"image_token_index": 100},  # None, and then no picture is looked for
    "esm": {"pad_token_id": 1, "mask_token_id": 3, "vocab_size": 33},  # left to the checkpoint
    "timm_backbone": {"backbone": "resnet18"},  # left to the checkpoint
    "step3p7": {"text_config": {"sliding_window": 4}},  # left to the checkpoint
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},  # no default
    "xmod": {"default_language": "en_XX"},  # no default
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},  # no default
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": 16}},  # a quarter of the text's width
    "falcon_h1": {"mamba_d_ssm": 128},  # heads times their width
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), FORECAST),  # no default
    "perceiver": {"image_size": 16, "num_latents": 8, "d_latents": 32},  # a position for each pixel
}
"""By model type or class: fields of the configuration."""


def _plan(sizes: Mapping[str, int] | None = None, **arguments: TensorPlan) -> Callable[[Any], CallPlan]:
    return lambda model: CallPlan(arguments, {"batch": 2, "sequence": 8, **(sizes or {})})


TEXT = ("batch", "sequence")
PLANS: Mapping[str, Callable[[Any], CallPlan]] = {
    "decision_transformer": _plan(
        states=TensorPlan("float", (*TEXT, 17)), actions=TensorPlan("float", (*TEXT, 4)),
        rewards=TensorPlan("float", (*TEXT, 1)), returns_to_go=TensorPlan("float", (*TEXT, 1)),
        timesteps=TensorPlan("ids", TEXT, (30,)), attention_mask=TensorPlan("mask", TEXT),
    ),
    "siglip2": _plan(
        input_ids=TensorPlan("ids", TEXT), pixel_values=TensorPlan("float", ("batch", 16, 768)),
        pixel_attention_mask=TensorPlan("ones", ("batch", 16)), spatial_shapes=TensorPlan("grid", ("batch", 2), (4, 4)),
    ),
    "idefics": _plan(
        input_ids=TensorPlan("ids", TEXT), attention_mask=TensorPlan("mask", TEXT),
        pixel_values=TensorPlan("float", ("batch", 1, 3, 56, 56)), image_attention_mask=TensorPlan("ones", (*TEXT, 1)),
    ),
}  # fmt: skip
"""By model type or class: the call."""
