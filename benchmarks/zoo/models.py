"""Architectures by name. Some of `transformers` are written by hand, with random weights and tiny configurations.

Each builder returns a subject for the judge: the example, other sizes, and padded masks. Sizes are declared as a user
of a language model would: batch and sequence free from 1, the sequence up to what the positions allow.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from benchmarks.judge import Inputs, Subject
from trueport.zoo import build as make
from trueport.zoo import is_named

SHARED = Path(__file__).resolve().parents[3] / "shared" / "zoo"
"""Architectures of transformers, timm and torchvision; each comes with other values, sizes and padded masks."""
SHIM = "tvshim"
"""Of that folder: declares torchvision's operators where the library itself cannot be loaded."""


def _import_torchvision() -> bool:
    """Before transformers, which imports it, too. `benchmarks.stand_ins` lets a CUDA build be loaded."""
    if importlib.util.find_spec("torchvision") is None:
        return False
    if SHARED.is_dir():
        sys.path.insert(0, str(SHARED))
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        if SHARED.is_dir():
            for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            importlib.import_module(SHIM)
        return SHARED.is_dir()
    sys.modules[SHIM] = types.ModuleType(SHIM)  # the folder imports it; the operators are there
    return SHARED.is_dir()


HAS_SHARED = _import_torchvision()
transformers: Any = importlib.import_module("transformers")  # its own annotations of configurations are too narrow
LIBRARY = str(Path(transformers.__file__).parent)
VOCABULARY = 99
POSITIONS = 64
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SMALL_TEXT = {**TINY, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS}

BATCH = Dim("batch", min=1, max=1024)
SEQUENCE = Dim("sequence", min=1, max=POSITIONS)
TARGET = Dim("target", min=1, max=POSITIONS)

Build = Callable[[], Subject]
ZOO: dict[str, Build] = {}


def zoo(build: Build) -> Build:
    ZOO[build.__name__] = build
    return build


def _subject(name: str, model: Any, shapes: dict[str, Any], calls: list[dict[str, Any]]) -> Subject:
    first, *more = [_call(kwargs) for kwargs in calls]
    return Subject(name, model.eval(), first, more, shapes, LIBRARY)


def _call(kwargs: dict[str, Any]) -> Inputs:
    return (), kwargs


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (batch, length))


def _mask(batch: int, length: int, padding: int = 0, left: bool = False) -> torch.Tensor:
    """Ones, with `padding` zeros at one end of every second row."""
    mask = torch.ones(batch, length, dtype=torch.long)
    if padding:
        mask[::2, slice(0, padding) if left else slice(length - padding, None)] = 0
    return mask


def _text(batch: int, length: int, padding: int = 0, left: bool = False) -> dict[str, Any]:
    return {"input_ids": _ids(batch, length), "attention_mask": _mask(batch, length, padding, left)}


TEXT_SHAPES = {"input_ids": {0: BATCH, 1: SEQUENCE}, "attention_mask": {0: BATCH, 1: SEQUENCE}}


def _text_calls() -> list[dict[str, Any]]:
    """The example, three other sizes, and masks padded at either end."""
    sizes = [_text(2, 7), _text(1, 5), _text(3, 12), _text(5, 1)]
    return [*sizes, _text(2, 9, padding=4), _text(3, 8, padding=3, left=True)]


@zoo
def bert() -> Subject:
    return _subject("bert", transformers.BertModel(transformers.BertConfig(**SMALL_TEXT)), TEXT_SHAPES, _text_calls())


@zoo
def gpt2() -> Subject:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=POSITIONS,
        n_embd=32,
        n_layer=2,
        n_head=4,
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    return _subject("gpt2", transformers.GPT2LMHeadModel(config), TEXT_SHAPES, _text_calls())


@zoo
def llama() -> Subject:
    config = transformers.LlamaConfig(**SMALL_TEXT, num_key_value_heads=2, use_cache=False)
    return _subject("llama", transformers.LlamaForCausalLM(config), TEXT_SHAPES, _text_calls())


@zoo
def mistral() -> Subject:
    """With a sliding window shorter than some of the sequences, so that it matters."""
    config = transformers.MistralConfig(**SMALL_TEXT, num_key_value_heads=2, sliding_window=6, use_cache=False)
    return _subject("mistral", transformers.MistralForCausalLM(config), TEXT_SHAPES, _text_calls())


@zoo
def mixtral() -> Subject:
    config = transformers.MixtralConfig(
        **SMALL_TEXT, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, use_cache=False
    )
    return _subject("mixtral", transformers.MixtralForCausalLM(config), TEXT_SHAPES, _text_calls())


@zoo
def t5() -> Subject:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False
    )

    def call(batch: int, length: int, target: int, padding: int = 0) -> dict[str, Any]:
        return {**_text(batch, length, padding), "decoder_input_ids": _ids(batch, target)}

    shapes = {**TEXT_SHAPES, "decoder_input_ids": {0: BATCH, 1: TARGET}}
    calls = [call(2, 7, 5), call(1, 5, 4), call(3, 12, 2), call(4, 3, 9), call(2, 9, 6, padding=4)]
    return _subject("t5", transformers.T5ForConditionalGeneration(config), shapes, calls)


@zoo
def vit() -> Subject:
    """A fixed image: only the batch is free."""
    config = transformers.ViTConfig(**TINY, image_size=32, patch_size=8)
    calls = [{"pixel_values": torch.randn(batch, 3, 32, 32)} for batch in (2, 1, 3, 5)]
    return _subject("vit", transformers.ViTModel(config), {"pixel_values": {0: BATCH}}, calls)


@zoo
def detr() -> Subject:
    """Batch, height and width free; the backbone is a small ResNet of transformers itself, without timm or the hub."""
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, num_queries=5,
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64,
    )  # fmt: skip

    def call(batch: int, height: int, width: int, padding: int = 0) -> dict[str, Any]:
        mask = torch.ones(batch, height, width, dtype=torch.long)
        if padding:
            mask[::2, height - padding :] = 0
            mask[::2, :, width - padding :] = 0
        return {"pixel_values": torch.randn(batch, 3, height, width), "pixel_mask": mask}

    height, width = Dim("height", min=32, max=512), Dim("width", min=32, max=512)
    shapes = {"pixel_values": {0: BATCH, 2: height, 3: width}, "pixel_mask": {0: BATCH, 1: height, 2: width}}
    calls = [call(2, 64, 64), call(1, 48, 80), call(3, 64, 96), call(4, 70, 50), call(2, 64, 80, padding=24)]
    return _subject("detr", transformers.DetrForObjectDetection(config), shapes, calls)


@zoo
def whisper() -> Subject:
    """The audio window is fixed by the architecture; batch and the decoder's sequence are free."""
    frames = 2 * 20
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=frames // 2, max_target_positions=POSITIONS, use_cache=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip

    def call(batch: int, target: int, padding: int = 0) -> dict[str, Any]:
        return {
            "input_features": torch.randn(batch, 8, frames),
            "decoder_input_ids": _ids(batch, target),
            "decoder_attention_mask": _mask(batch, target, padding),
        }

    decoder = {0: BATCH, 1: TARGET}
    shapes = {"input_features": {0: BATCH}, "decoder_input_ids": decoder, "decoder_attention_mask": decoder}
    calls = [call(2, 5), call(1, 4), call(3, 9), call(4, 1), call(2, 7, padding=3)]
    return _subject("whisper", transformers.WhisperForConditionalGeneration(config), shapes, calls)


DECODER = {**SMALL_TEXT, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**DECODER, "num_key_value_heads": 2, "use_cache": False}
STATES = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 4}
WINDOWS = {"head_dim": 8, "sliding_window": 4}
RECENT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bamba": ("BambaForCausalLM", "BambaConfig", {**GROUPED, **STATES, "attn_layer_indices": [1]}),
    "deberta_v2": (
        "DebertaV2Model",
        "DebertaV2Config",
        {**SMALL_TEXT, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
    ),
    "falcon_h1": (
        "FalconH1ForCausalLM",
        "FalconH1Config",
        {**GROUPED, **STATES, "head_dim": 8, "mamba_n_heads": 4, "mamba_d_ssm": 32},
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        {**GROUPED, **WINDOWS, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", {**GROUPED, "head_dim": 8}),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GROUPED, **WINDOWS, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", {**GROUPED, "layer_types": ["conv", "full_attention"]}),
    "minimax": (
        "MiniMaxForCausalLM",
        "MiniMaxConfig",
        {
            **GROUPED,
            "head_dim": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "layer_types": ["linear_attention", "full_attention"],
            "block_size": 4,
        },
    ),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", GROUPED),
}
"""Language models of 2024 to 2026, by name: the model, its configuration, and what is in it."""


def _recent(name: str) -> Build:
    model, config, options = RECENT[name]
    return lambda: _subject(
        name,
        getattr(transformers, model)(getattr(transformers, config)(**options)),
        TEXT_SHAPES,
        _text_calls(),
    )


ZOO.update({name: _recent(name) for name in RECENT})


@zoo
def nystromformer() -> Subject:
    """Landmarks of a fixed length; eager takes no mask but one of ones, and a library's way for exports takes none."""
    config = transformers.NystromformerConfig(**SMALL_TEXT, num_landmarks=4, segment_means_seq_len=8)
    calls = [_text(batch, 8) for batch in (2, 1, 3, 5)]
    shapes = {"input_ids": {0: BATCH}, "attention_mask": {0: BATCH}}
    return _subject("nystromformer", transformers.NystromformerModel(config), shapes, calls)


@zoo
def wav2vec2_bert() -> Subject:
    config = transformers.Wav2Vec2BertConfig(
        **TINY, feature_projection_input_dim=16, conv_depthwise_kernel_size=5, left_max_position_embeddings=8,
        right_max_position_embeddings=4,
    )  # fmt: skip

    def call(batch: int, frames: int, padding: int = 0) -> dict[str, Any]:
        return {
            "input_features": torch.randn(batch, frames, 16),
            "attention_mask": _mask(batch, frames, padding),
        }

    frames = Dim("frames", min=1, max=1024)
    shapes = {"input_features": {0: BATCH, 1: frames}, "attention_mask": {0: BATCH, 1: frames}}
    calls = [call(2, 40), call(1, 33), call(3, 57), call(2, 40, padding=8)]
    return _subject("wav2vec2_bert", transformers.Wav2Vec2BertModel(config), shapes, calls)


def build(name: str) -> Subject:
    """The weights depend on the name only, so that every process builds the same model."""
    if is_named(name):
        return _named(name)
    if name not in ZOO:
        return _shared(name)
    torch.manual_seed(sum(name.encode()))
    subject = ZOO[name]()
    with torch.no_grad():
        for weight in subject.model.parameters():
            if weight.dim() > 1:
                # The libraries start so close to zero that a wrong mask would stay below the tolerance.
                weight.normal_(std=0.2)
    return subject


def _named(name: str) -> Subject:
    """Made by trueport's own builder; what it is judged by is not."""
    made = make(name)
    own = str(Path(sys.modules[name.partition(":")[0]].__file__ or "").parent)
    return Subject(name, made.model, (made.args, made.kwargs), made.more, made.dynamic_shapes, own)


def shared_names() -> list[str]:
    """None where there is no such folder, or no torchvision. Names that both have are ours."""
    return [name for name in _shared_models().names() if name not in ZOO] if HAS_SHARED else []


def _shared_models() -> Any:
    return importlib.import_module("models")


def _shared(name: str) -> Subject:
    model, args, kwargs, shapes, more = _shared_models().build(name)
    library = importlib.import_module(type(model).__module__.partition(".")[0])
    own = str(Path(library.__file__ or "").parent) if library.__name__ != "models" else str(Path(LIBRARY).parent)
    return Subject(name, model, (args, kwargs), [(given, named) for _, given, named in more], shapes, own)
