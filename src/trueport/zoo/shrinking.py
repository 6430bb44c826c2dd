"""A configuration of transformers with the same parts, made small.

The names of the fields say what they count. What is one in number stays (a switch, a kernel, a rate), what is many
becomes few: layers, widths, heads, experts, words. Relations hold because one kind has one value everywhere: all widths
are `WIDTH`, and that is heads times the width of a head.

Not every architecture takes that, so there are degrees: at the next one widths stay as they are, at the last all but
the number of layers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

WIDTH, WIDER, HEADS, HEAD_WIDTH = 64, 128, 4, 16
VOCABULARY = 128
FIRST_SPECIAL = 96
"""Ids from here on stand for an image, a sound, an end; text uses those below."""
POSITIONS = 64
NOT_SAID = {
    "head_dim": HEAD_WIDTH, "n_routed_experts": 4, "num_experts_per_tok": 2, "vocab_size": VOCABULARY, "prediction_length": 4,
    "num_experts": 4, "moe_topk": 2, "num_local_experts": 4, "num_key_value_heads": HEADS, "n_shared_experts": 1,
}  # fmt: skip
"""What some configurations leave to each checkpoint."""
LAYERS = 2
MOST_LAYERS = 4
DEGREES = range(4)

Rule = Callable[[int], int]


def _at_most(limit: int) -> Rule:
    return lambda value: min(value, limit)


_DEPTH: tuple[tuple[str, Rule], ...] = (
    (r"num_kv_shared_layers|mtp_num_hidden_layers|num_nextn_predict_layers|num_mtp_layers", lambda value: 0),
    (r"max_window_layers|first_k_dense_replace|num_dense_layers|num_hash_layers", _at_most(1)),
    (r"insert_layer_id", lambda value: 0),
    (r"(.*_)?(n_layers?|num_layers?|layers|depth|n_blocks|num_blocks|num_blocks_per_stage|num_hidden_groups)|layers_(encoder|decoder)",
     _at_most(LAYERS)),
    (r"(.*_)?(depths|layer_depths|stage_num_blocks|num_blocks_repeat|num_encoder_blocks_per_stage)", _at_most(2)),
    (r".*_period|full_attention_interval|(global|cross)_attn.*_every_n_layers|sliding_window_pattern|.*_layer_interval|cross_attention_frequency",
     _at_most(2)),
    (r".*_layer_offset|attn_layer_offset", _at_most(1)),
)  # fmt: skip
_COUNTS: tuple[tuple[str, Rule], ...] = (
    (r"(.*_)?(num|n|routed)?_?(local_|routed_|moe_)*experts", _at_most(4)),
    (r"(moe_num_experts|num_moe_experts|moe_num_shared_experts|n_shared_experts|num_shared_experts)", _at_most(2)),
    (r"(.*_)?(num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts|num_selected_experts|expert_num_per_tok|moe_top_k|experts_top_k)", _at_most(2)),
    (r"n_group|topk_group|num_expert_group", lambda value: 1),
    (r"(.*_)?(vocab_size|num_embeddings|codebook_size|head_out_channels|num_codevectors_per_group|n_e|vocab_size_per_layer_input|group_vocab)",
     lambda value: VOCABULARY if value > VOCABULARY else value),
    (r"(.*_)?(max_position_embeddings|n_positions|n_ctx|max_seq_len\w*|max_sequence_length|max_target_positions|max_source_positions|max_2d_position_embeddings|max_position|seq_length|max_txt_len|model_max_length)",
     _at_most(POSITIONS)),
    (r"(num_queries|num_object_queries|two_stage_num_proposals|num_query_tokens|num_denoising|num_latents|num_query_token|num_learnable_queries|num_learnt_queries|resampler_n_latents)", _at_most(10)),
    (r"num_quantizers|num_codebooks|n_codebooks|num_semantic_quantizers", _at_most(4)),
    (r"(.*_)?(chunk_size|attention_chunk_size|block_size)", _at_most(16)),
    (r"sliding_window|attention_window|local_attention|max_local_window|sliding_window_size|local_window_size", _at_most(4)),
)  # fmt: skip
_WIDTHS: tuple[tuple[str, Rule], ...] = (
    (r"(.*_)?(num_channels|in_channels|in_chans|num_input_channels|input_channels)", lambda value: WIDTH if value > 16 else value),
    (r"(.*_)?(head_dim|d_kv|d_head|dim_head|dim_k|dim_v|attention_head_size|v_head_dim|qk_nope_head_dim|qk_rope_head_dim|kv_channels|head_size|index_head_dim|global_head_dim|attention_key_channels)", _at_most(HEAD_WIDTH)),
    (r"upsample_groups", _at_most(WIDTH)),
    (r"num_pos_feats", _at_most(WIDTH // 2)),
    (r"rotary_dim|rope_dim", _at_most(HEAD_WIDTH // 2)),
    (r".*lora_rank|state_size|ssm_state_size|mamba_d_state|.*time_step_rank|mamba_dt_rank|dt_rank", _at_most(16)),
    (r"(.*_)?(kv_heads|key_value_heads|num_kv|n_head_kv|num_key_value_heads|multi_query_group_num)", lambda value: value if value < 3 else 2),
    (r"(.*_)?(num_attention_heads|attention_heads|num_heads|n_heads?|heads|num_head|linear_num_key_heads|linear_num_value_heads|index_n_heads|nhead)", _at_most(HEADS)),
    (r"(.*_)?(intermediate_size|ffn_dim|ffn_hidden_size|mlp_dim|d_ff|d_inner|n_inner|dim_feedforward|hidden_dim|feedforward_size|inner_dim|ffn_size|dim_ff|mlp_hidden_size|encoder_ffn_dim|feed_forward_size|expert_dim|(dense_)?ffn_intermediate_size)",
     _at_most(WIDER)),
    (r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|embedding_size|embedding_dim|projection_dim|projection_size|proj_dim|dim|width|channels|hidden_channels|out_hidden_size|output_hidden_size|output_dim|pooler_output_size|emb_dim|feature_dim|latent_dim|mlp_channels|fpn_feature_size|mask_feature_size|fusion_hidden_size|hidden_size_per_layer_input|\w*_hidden_size|\w*_embed_dim|\w*_dim|channel_size|cross_attention_hidden_size|upsample_initial_channel|output_channels)", _at_most(WIDTH)),
)  # fmt: skip
_NOT_WIDTHS = re.compile(
    r"(.*_)?(kernel|patch|stride|query|bbox|box|act|state|action|layer_norm)_?(dim|size)?|num_labels"
)
_WIDTH_LISTS = re.compile(r"(.*_)?(hidden_sizes|embed_dims?|conv_dim|tdnn_dim|encoder_in_channels|neck_hidden_sizes)")
_TOKENS = re.compile(r"(.*_)?(token|start|end|bos|eos|pad)_(id|index|ids|idx)")
_IMAGES = re.compile(
    r"(.*_)?(image_size|img_size|pretrain_img_size|pretrain_image_size|input_size|image_height|image_width|crop_size)"
)


def shrunk(config_class: type, degree: int, said: Mapping[str, Any] | None = None) -> Any:
    """An instance of the class. `said` are fields that are known better; a nested dict is for a nested configuration."""
    return _Shrinking(degree).of(config_class, None, dict(said or {}))


class _Shrinking:
    def __init__(self, degree: int) -> None:
        self.degree = degree
        self.special: dict[str, int] = {}
        """The id of each special token, by its name, the same in all nested configurations."""

    def of(self, config_class: type, default: Any, said: dict[str, Any]) -> Any:
        base = self._default(config_class, said)
        default = base if default is None else default
        fields = {field.name for field in dataclasses.fields(config_class)} - _of_base(config_class)  # type: ignore[arg-type]
        fields |= {name for name in vars(default) if hasattr(vars(default)[name], "to_dict")}
        values = {name: _value(default, name) for name in fields}
        made = {name: self._small(name, value, said) for name, value in values.items()}
        made = {
            name: value for name, value in made.items() if value is not None and _differs(value, _value(base, name))
        }
        made |= self._by_layer(values, made)
        made |= _small_images(values) if self.degree < 3 else {}
        made |= _consistent(values, made) if self.degree == 0 else {}
        made |= _outputs(default, made)
        made |= {name: value for name, value in said.items() if not isinstance(value, dict) or name not in values}
        if "use_cache" in values:
            made["use_cache"] = False
        return config_class(**made)

    def _default(self, config_class: type, said: Mapping[str, Any]) -> Any:
        """Some cannot be made without what is said."""
        try:
            return config_class()
        except Exception:  # noqa: BLE001 an error of the library's own
            return config_class(**said)

    def _small(self, name: str, value: Any, said: Mapping[str, Any]) -> Any:
        if type(value).__name__ == "TimmBackboneConfig":
            return _backbone(value)
        if hasattr(value, "to_dict"):
            inner = said.get(name)
            return self.of(type(value), value, inner if isinstance(inner, dict) else {})
        if value is None and self.degree == 0:
            return NOT_SAID.get(name)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, dict) and name == "rope_parameters" and self.degree == 0:
            return _fewer_rotations(value)
        if isinstance(value, int):
            return self._number(name, value)
        if isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
            return type(value)(self._several(name, list(value)))
        return value

    def _number(self, name: str, value: int) -> int:
        if value < 0:
            return value
        if _TOKENS.fullmatch(name):
            return value if value < FIRST_SPECIAL - 8 else self._token(name)
        if _IMAGES.fullmatch(name) and self.degree < 3:
            return value  # with the size of a patch, in `_small_images`
        tables = ((_DEPTH, _COUNTS, _WIDTHS), (_DEPTH, _COUNTS), (_DEPTH, _COUNTS), (_DEPTH,))[self.degree]
        for table in tables:
            if table is _WIDTHS and _NOT_WIDTHS.fullmatch(name):
                continue
            for pattern, rule in table:
                if re.fullmatch(pattern, name):
                    return rule(value)
        return value

    def _several(self, name: str, values: list[int]) -> list[int]:
        if _TOKENS.fullmatch(name):
            return [self._number(name, values[0])]
        if re.fullmatch(r"(.*_)?(depths?|num_blocks|layers|stage_num_blocks|num_layers)", name):
            return [min(value, 2) for value in values]
        if self.degree == 0 and min(values) >= 32 and _WIDTH_LISTS.fullmatch(name):
            return [value // 4 for value in values]
        return values

    def _token(self, name: str) -> int:
        return self.special.setdefault(name, FIRST_SPECIAL + len(self.special) % (VOCABULARY - FIRST_SPECIAL))

    def _by_layer(self, values: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
        """Lists with an item for each layer: one layer of each kind that the architecture has."""
        counts = [
            name
            for name in ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
            if name in values
        ]
        if not counts or not isinstance(values[counts[0]], int) or values[counts[0]] < 2:
            return {}
        count = values[counts[0]]
        lists = {
            name: list(value) for name, value in values.items()
            if isinstance(value, list | tuple) and len(value) == count and not isinstance(value[0], dict)
        }  # fmt: skip
        if not lists:
            return {}
        kinds = [tuple(str(each[layer]) for each in lists.values()) for layer in range(count)]
        chosen = [layer for layer in range(count) if kinds[layer] not in kinds[:layer]][:MOST_LAYERS]
        chosen = sorted({*chosen, *range(LAYERS)}) if len(chosen) < LAYERS else chosen
        found: dict[str, Any] = {name: [values_[layer] for layer in chosen] for name, values_ in lists.items()}
        return found | {counts[0]: len(chosen)}


def _consistent(values: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """What one field says of another."""
    found: dict[str, Any] = {}

    def now(name: str) -> Any:
        return found.get(name, made.get(name, values.get(name)))

    heads = values.get("num_heads")
    if isinstance(heads, list | tuple) and isinstance(values.get("embed_dim"), int):
        found["embed_dim"] = HEAD_WIDTH * heads[0]
    for expand, count, width in (
        ("expand", "num_heads", "head_dim"),
        ("mamba_expand", "mamba_n_heads", "mamba_d_head"),
        ("mamba_expand", "mamba_num_heads", "mamba_head_dim"),
        ("mamba_expand", "n_mamba_heads", "mamba_headdim"),
        ("expand", "mamba_num_heads", "mamba_head_dim"),
    ):
        if all(isinstance(now(name), int | float) for name in (expand, count, width)):
            found[width] = HEAD_WIDTH
            found[count] = int(now(expand) * (now("hidden_size") or WIDTH)) // HEAD_WIDTH
    kv, all_heads = values.get("num_key_value_heads"), values.get("num_attention_heads")
    if isinstance(kv, int) and kv == all_heads:
        found["num_key_value_heads"] = now("num_attention_heads")
    return found


def _backbone(default: Any) -> Any:
    """One of transformers' own instead of timm's, with as many features."""
    from transformers import ResNetConfig

    stages = [f"stage{number}" for number in (1, 2, 3, 4)]
    count = len(getattr(default, "out_indices", None) or (4,))
    return ResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1] * 4,
        layer_type="basic",
        out_features=stages[-count:],
    )


def _outputs(default: Any, made: Mapping[str, Any]) -> dict[str, Any]:
    """A backbone that gives the features of some layers: all layers that there are now, and as many."""
    stages = getattr(default, "stage_names", None) or ()
    given = list(getattr(default, "_out_indices", None) or ())
    found: dict[str, Any] = {}
    if given and len(stages) - 1 == getattr(default, "num_hidden_layers", None) and "num_hidden_layers" in made:
        if len(given) > 1 or given[0] != len(stages) - 1:
            found = {"num_hidden_layers": max(len(given), LAYERS), "out_indices": [*range(1, 1 + len(given))]}
    elif len(given) > 1:
        found = {"out_indices": given}
    return found


def _fewer_rotations(rope: dict[str, Any]) -> dict[str, Any]:
    """The sections of a rotation are half a head together. Who has no sections does not read them."""
    if any(isinstance(value, dict) for value in rope.values()):
        return {name: _fewer_rotations(value) if isinstance(value, dict) else value for name, value in rope.items()}
    if "rope_type" not in rope:
        return rope
    half = int(HEAD_WIDTH * rope.get("partial_rotary_factor", 1.0)) // 2
    return {**rope, "mrope_section": [half - 2 * (half // 3), half // 3, half // 3]}


def _value(default: Any, name: str) -> Any:
    """None for what a configuration keeps for each layer by itself, and does not tell."""
    try:
        return getattr(default, name, None)
    except Exception:  # noqa: BLE001 an error of the library's own
        return None


def _small_images(values: Mapping[str, Any]) -> dict[str, Any]:
    """A few patches; an even number, since neighbours are merged in some."""
    patch = next((values[name] for name in ("patch_size", "vision_patch_size") if values.get(name)), 16)
    patch = patch[-1] if isinstance(patch, list | tuple) else patch
    size = patch * (4 if patch >= 14 else 2 * -(-32 // patch))
    return {
        name: size if isinstance(value, int) else type(value)([size] * len(value))
        for name, value in values.items()
        if _IMAGES.fullmatch(name)
        and (isinstance(value, int) or (isinstance(value, list | tuple) and len(value) == 2))
        and (value if isinstance(value, int) else min(value)) > size
    }


def _of_base(config_class: type) -> set[str]:
    base = next(each for each in config_class.__mro__ if each.__name__ == "PreTrainedConfig")
    hidden = {field.name for field in dataclasses.fields(config_class) if field.name.startswith("_")}  # type: ignore[arg-type]
    kept = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}
    return {field.name for field in dataclasses.fields(base)} - kept | hidden  # type: ignore[arg-type]


def _differs(new: Any, old: Any) -> bool:
    return hasattr(new, "to_dict") or new != old
