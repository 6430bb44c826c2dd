"""A configuration of transformers with the same parts, made small.

The names of the fields say what they count. What is one in number stays (a switch, a kernel, a rate), what is many
becomes few: layers, widths, heads, experts, words. Relations hold because one kind has one value everywhere: all widths
are `WIDTH`, and that is heads times the width of a head.

Not every architecture takes that, so there are degrees: at the next one widths stay as they are, at the last all but
the number of layers and the size of pictures.
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
    "head_dim": HEAD_WIDTH, "n_routed_experts": 4, "num_experts_per_tok": 2, "vocab_size": VOCABULARY,
    "num_experts": 4, "moe_topk": 2, "num_local_experts": 4, "num_key_value_heads": HEADS, "n_shared_experts": 1,
}  # fmt: skip
"""What some configurations leave to each checkpoint."""
LAYERS = 2
MOST_LAYERS = 4
DEGREES = range(3)

Rule = tuple[re.Pattern[str], Callable[[int], int]]


def _ends(words: str) -> re.Pattern[str]:
    """Names that end in one of these words, `*` for any part of a name."""
    return re.compile(rf"(.*_)?({'|'.join(words.split()).replace('*', '.*')})")


def _at_most(limit: int, words: str) -> Rule:
    return _ends(words), lambda value: min(value, limit)


_DEPTH: tuple[Rule, ...] = (
    _at_most(0, "num_kv_shared_layers mtp_num_hidden_layers num_nextn_predict_layers num_mtp_layers insert_layer_id"),
    _at_most(1, "max_window_layers first_k_dense_replace num_dense_layers num_hash_layers layer_offset"),
    _at_most(LAYERS, "n_layer n_layers num_layer layers depth n_blocks num_blocks num_hidden_groups"),
    _at_most(LAYERS, "layers_encoder layers_decoder"),
    _at_most(LAYERS, "num_blocks_per_stage layer_depths num_blocks_repeat num_encoder_blocks_per_stage"),
    _at_most(2, "period full_attention_interval attn_every_n_layers global_attn_every_n_layers sliding_window_pattern"),
    _at_most(2, "layer_interval cross_attention_frequency"),
)  # fmt: skip
_COUNTS: tuple[Rule, ...] = (
    _at_most(2, "moe_num_experts num_moe_experts moe_num_shared_experts n_shared_experts num_shared_experts"),
    _at_most(4, "experts num_quantizers num_codebooks n_codebooks num_semantic_quantizers"),
    _at_most(2, "num_experts_per_tok num_experts_per_token moe_topk moe_k top_k_experts num_selected_experts"),
    _at_most(2, "expert_num_per_tok moe_top_k experts_top_k"),
    _at_most(1, "n_group topk_group num_expert_group"),
    _at_most(VOCABULARY, "vocab_size num_embeddings codebook_size head_out_channels num_codevectors_per_group n_e"),
    _at_most(VOCABULARY, "vocab_size_per_layer_input group_vocab"),
    _at_most(POSITIONS, "max_position_embeddings n_positions n_ctx max_seq_len* max_sequence_length"),
    _at_most(POSITIONS, "max_source_positions max_target_positions max_2d_position_embeddings max_position"),
    _at_most(POSITIONS, "seq_length max_txt_len model_max_length context_length"),
    _at_most(10, "num_queries num_object_queries two_stage_num_proposals num_query_tokens num_denoising num_latents"),
    _at_most(10, "num_query_token num_learnable_queries num_learnt_queries resampler_n_latents"),
    _at_most(16, "chunk_size block_size"),
    _at_most(4, "sliding_window attention_window local_attention max_local_window sliding_window_size"),
    _at_most(4, "local_window_size"),
)  # fmt: skip
_WIDTHS: tuple[Rule, ...] = (
    (_ends("num_channels in_channels in_chans input_channels"), lambda value: WIDTH if value > 16 else value),
    _at_most(HEAD_WIDTH, "head_dim d_kv d_head dim_head dim_k dim_v head_size kv_channels attention_key_channels"),
    _at_most(HEAD_WIDTH // 2, "rotary_dim rope_dim"),
    _at_most(WIDTH, "upsample_groups"),
    _at_most(WIDTH // 2, "num_pos_feats"),
    _at_most(16, "*lora_rank state_size d_state *time_step_rank dt_rank"),
    (_ends("kv_heads key_value_heads num_kv n_head_kv multi_query_group_num"), lambda value: min(value, 2)),
    _at_most(HEADS, "heads n_head num_head nhead"),
    _at_most(WIDER, "intermediate_size ffn_dim ffn_hidden_size mlp_dim d_ff d_inner n_inner dim_feedforward"),
    _at_most(WIDER, "hidden_dim feedforward_size inner_dim ffn_size dim_ff mlp_hidden_size feed_forward_size"),
    _at_most(WIDER, "expert_dim"),
    _at_most(WIDTH, "hidden_size d_model n_embd embedding_size projection_size dim width channels pooler_output_size"),
    _at_most(WIDTH, "fpn_feature_size mask_feature_size hidden_size_per_layer_input"),
    _at_most(WIDTH, "channel_size upsample_initial_channel"),
)  # fmt: skip
_NOT_WIDTHS = re.compile(
    r"(.*_)?(kernel|patch|stride|query|bbox|box|act|state|action|layer_norm)_?(dim|size)?|num_labels"
)
_WIDTH_LISTS = _ends("hidden_sizes embed_dim embed_dims conv_dim tdnn_dim encoder_in_channels neck_hidden_sizes")
_DEPTH_LISTS = _ends("depth depths num_blocks layers stage_num_blocks num_layers")
_TOKENS = re.compile(r"(.*_)?(token|start|end|bos|eos|pad)_(id|index|ids|idx)")
_IMAGES = _ends("image_size img_size input_size image_height image_width crop_size")


def shrunk(config_class: type, degree: int, said: Mapping[str, Any] | None = None) -> Any:
    """An instance of the class. `said` are fields that are known better; a nested dict is for a nested one."""
    return _Shrinking(degree).of(config_class, None, dict(said or {}))


def smaller(name: str, value: Any, degree: int) -> Any:
    """One field, by its name."""
    return _Shrinking(degree)._small(name, value, {})


class _Shrinking:
    def __init__(self, degree: int) -> None:
        self.degree = degree
        self.special: dict[str, int] = {}
        """The id of each special token, by its name, the same in all nested configurations."""

    def of(self, config_class: type, default: Any, said: dict[str, Any]) -> Any:
        base = self._default(config_class, said)
        default = base if default is None else default
        fields = {field.name for field in dataclasses.fields(config_class)} - _of_base(config_class)
        fields |= {name for name in vars(default) if hasattr(vars(default)[name], "to_dict")}
        values = {name: _value(default, name) for name in fields}
        made = {name: self._small(name, value, said) for name, value in values.items()}
        made = {
            name: value for name, value in made.items() if value is not None and _differs(value, _value(base, name))
        }
        made |= self._by_layer(values, made)
        made |= _small_images(values)
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
        if _IMAGES.fullmatch(name):
            return value  # with the size of a patch, in `_small_images`
        tables = ((_DEPTH, _COUNTS, _WIDTHS), (_DEPTH, _COUNTS), (_DEPTH,))[self.degree]
        for table in tables:
            if table is _WIDTHS and _NOT_WIDTHS.fullmatch(name):
                continue
            for pattern, rule in table:
                if pattern.fullmatch(name):
                    return rule(value)
        return value

    def _several(self, name: str, values: list[int]) -> list[int]:
        if _TOKENS.fullmatch(name):
            return [self._number(name, values[0])]
        if _DEPTH_LISTS.fullmatch(name):
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
    import transformers

    resnet: Any = transformers.ResNetConfig
    stages = [f"stage{number}" for number in (1, 2, 3, 4)]
    count = len(getattr(default, "out_indices", None) or (4,))
    return resnet(
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
    found: dict[str, Any] = {}
    for name, value in values.items():
        if not _IMAGES.fullmatch(name):
            continue
        if isinstance(value, int) and value > size:
            found[name] = size
        elif isinstance(value, list | tuple) and len(value) == 2 and min(value) > size:
            found[name] = [size, size] if isinstance(value, list) else (size, size)
    if found and isinstance(values.get("depths"), list | tuple) and isinstance(values.get("window_size"), int):
        found["window_size"] = 2  # of stages that halve the picture, the last is this small
    return found


def _of_base(config_class: type) -> set[str]:
    base = next(each for each in config_class.__mro__ if each.__name__ == "PreTrainedConfig")
    hidden = {field.name for field in dataclasses.fields(config_class) if field.name.startswith("_")}
    kept = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}
    return {field.name for field in dataclasses.fields(base)} - kept | hidden


def _differs(new: Any, old: Any) -> bool:
    return hasattr(new, "to_dict") or new != old
