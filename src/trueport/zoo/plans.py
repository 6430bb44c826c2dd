"""What a `forward` is called with: a plan names the arguments, and the sizes of each.

A size is a number, or a name, and a name is a size that may move: the same name, the same size. So a plan gives inputs
at any sizes, and says which of them are free.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueport.zoo.shrinking import FIRST_SPECIAL

Size = int | str
"""A name may have a factor: `16*batch`."""


@dataclass(frozen=True)
class TensorPlan:
    """One tensor."""

    kind: str
    """`float`, `ids` (of words), `mask` (padded), `ones`, `boxes`, `zeros`, `image_ids` (words behind an image)."""
    sizes: tuple[Size, ...]
    values: tuple[int, ...] = ()
    """For `image_ids`: the token, and how many of it. For `grid`: the one row that all have. For `ids`: the limit."""


@dataclass(frozen=True)
class CallPlan:
    """All arguments of a call."""

    arguments: Mapping[str, TensorPlan]
    sizes: Mapping[str, int]
    """Of each name, in the example."""
    least: Mapping[str, int] = field(default_factory=dict)

    def inputs(self, seed: int, sizes: Mapping[str, int] | None = None, padded: bool = True) -> dict[str, Any]:
        """Tensors that depend on nothing but what is given here."""
        random = torch.Generator().manual_seed(seed)
        at = {**self.sizes, **(sizes or {})}
        return {name: _tensor(argument, at, random, padded) for name, argument in self.arguments.items()}

    def fixed(self, name: str) -> CallPlan:
        """With this size as it is in the example."""

        def settled(size: Size) -> Size:
            factor, base = _parts(size) if isinstance(size, str) else (1, "")
            return factor * self.sizes[name] if base == name else size

        given = {
            each: replace(argument, sizes=tuple(map(settled, argument.sizes)))
            for each, argument in self.arguments.items()
        }
        return replace(self, arguments=given)

    @property
    def free(self) -> list[str]:
        named = [size for each in self.arguments.values() for size in each.sizes if isinstance(size, str)]
        return list(dict.fromkeys(_parts(size)[1] for size in named))

    def dynamic_shapes(self, steps: Mapping[str, int], limits: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
        """As torch takes them. `steps`: sizes that move by more than one."""
        from torch.export import Dim

        dims = {}
        for name in self.free:
            low, high = limits.get(name, (1, 1024))
            step = steps.get(name, 1)
            dims[name] = (
                Dim(name, min=low, max=high)
                if step == 1
                else step * Dim(f"{name}_{step}", min=max(1, low // step), max=high // step)
            )
        return {
            name: {
                axis: factor * dims[base] if factor > 1 else dims[base]
                for axis, size in enumerate(argument.sizes)
                if isinstance(size, str)
                for factor, base in [_parts(size)]
            }
            for name, argument in self.arguments.items()
        }


def _parts(size: str) -> tuple[int, str]:
    factor, star, name = size.rpartition("*")
    return (int(factor) if star else 1), name


def _tensor(argument: TensorPlan, at: Mapping[str, int], random: torch.Generator, padded: bool) -> torch.Tensor:
    def length(size: Size) -> int:
        if isinstance(size, int):
            return size
        factor, name = _parts(size)
        return factor * at[name]

    shape = [length(size) for size in argument.sizes]
    match argument.kind:
        case "ids":
            limit = argument.values[0] if argument.values else FIRST_SPECIAL - 1
            return torch.randint(min(5, limit - 1), limit, shape, generator=random)
        case "image_ids":
            words = torch.randint(5, FIRST_SPECIAL - 1, shape, generator=random)
            words[:, 1 : 1 + argument.values[1]] = argument.values[0]
            return words
        case "mask":
            mask = torch.ones(shape, dtype=torch.long)
            for row in range(1, shape[0] if padded else 0):
                mask[row, max(1, shape[1] - 2 * row) :] = 0
            return mask
        case "float_mask":
            return torch.ones(shape)
        case "ones":
            return torch.ones(shape, dtype=torch.long)
        case "true":
            return torch.ones(shape, dtype=torch.bool)
        case "zeros":
            return torch.zeros(shape, dtype=torch.long)
        case "boxes":
            return torch.randint(0, 60, shape, generator=random).sort(-1).values
        case "image_types":
            types = torch.zeros(shape, dtype=torch.long)
            types[:, 1 : 1 + argument.values[1]] = argument.values[0]
            return types
        case "grid":
            return torch.tensor([argument.values]).repeat(shape[0], 1)
        case "patches":
            patches = torch.randn(shape, generator=random)
            patches[..., :2] = torch.arange(1, 1 + shape[1]).view(-1, 1).expand(-1, 2) // 4 + 1
            return patches
        case "unit":
            return torch.rand(shape, generator=random)
    return torch.randn(shape, generator=random)


TEXT = ("batch", "sequence")
OF_REGIONS = ("visual_feats", "visual_pos")
"""What a detector found in a picture."""
IMAGE_TOKENS = ("image_token_id", "image_token_index")


def plans(model: Any) -> Iterator[CallPlan]:
    """What may be right for this model, the most telling first."""
    config = model.config
    parameters = {
        name: each
        for name, each in inspect.signature(model.forward).parameters.items()
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }
    required = [name for name, each in parameters.items() if each.default is each.empty]
    main = getattr(model, "main_input_name", "input_ids")
    wanted = list(dict.fromkeys([*required, *([main] if main in parameters else [])]))
    for usual in ("input_ids", "attention_mask", "decoder_input_ids", "pixel_mask", "bbox"):
        if usual in parameters and usual not in wanted and _belongs(usual, wanted, model):
            wanted.append(usual)
    if "past_values" in wanted:
        wanted += [
            name for name in ("future_values", "future_time_features") if name in parameters and name not in wanted
        ]
    yield from _with_pictures(model, parameters, wanted)
    for extra in ([], [name for name in ("pixel_values", "input_features", "input_values") if name in parameters]):
        yield from _combined(model, config, list(dict.fromkeys([*wanted, *extra])), parameters)
        without = [name for name in dict.fromkeys([*wanted, *extra]) if name in required or not name.endswith("mask")]
        yield from _combined(model, config, without, parameters)
    alone = [main] if main in parameters else required
    yield from _combined(model, config, list(dict.fromkeys([*required, *alone])), parameters)
    for names in (("input_ids", "attention_mask"), OF_REGIONS):
        beside = [name for name in names if name in parameters and name not in wanted]
        if beside:
            yield from _combined(model, config, [*wanted, *beside], parameters)


def _belongs(name: str, wanted: list[str], model: Any) -> bool:
    has_text = any(each in wanted for each in ("input_ids", "inputs"))
    match name:
        case "input_ids":
            return not wanted
        case "attention_mask":
            return has_text or any(each in wanted for each in ("input_features", "input_values", "audio_values"))
        case "decoder_input_ids":
            return True
        case "pixel_mask":
            return "pixel_values" in wanted
        case "bbox":
            return has_text
    return False


def _combined(model: Any, config: Any, names: list[str], parameters: Mapping[str, Any]) -> Iterator[CallPlan]:
    """Each argument may have several forms; all combinations, the usual ones first."""
    forms = [[(name, form) for form in _forms(name, config, model, names)] for name in names]
    if not forms or not all(forms):
        return
    for chosen in itertools.islice(itertools.product(*forms), 24):
        yield CallPlan(dict(chosen), _example_sizes(config))


def _example_sizes(config: Any) -> dict[str, int]:
    height, width = image_size(config)
    return {
        "batch": 2, "sequence": 8, "target": 5, "height": height, "width": width, "frames": 64, "samples": 2000,
        "boxes": 3,
    }  # fmt: skip


def _forms(name: str, config: Any, model: Any, names: list[str]) -> list[TensorPlan]:
    """How an argument of this name may look."""
    text = find(config, "vocab_size")
    words = (min(int(text), FIRST_SPECIAL - 1),) if isinstance(text, int) and text > 1 else ()
    channels, (height, width) = find(config, "num_channels", "in_channels", "in_chans") or 3, image_size(config)
    channels = channels if isinstance(channels, int) and channels <= 16 else 3
    mels = (
        find(
            config,
            "num_mel_bins",
            "n_mels",
            "feature_size",
            "input_dim",
            "num_mels",
            "input_feat_per_channel",
            "feature_projection_input_dim",
            "mel_bins",
        )
        or 80
    )
    frames = find(config, "max_source_positions", "max_length", "chunk_length")
    is_main = name == getattr(model, "main_input_name", "")
    match name:
        case "input_ids" | "text_input_ids" | "input_ids_masked":
            positions = find(config, "max_position_embeddings") or 16
            books = find(config, "num_codebooks") or 1
            stacked = [TensorPlan("ids", (f"{books}*batch", "sequence"), words)] if books > 1 else []
            choices = (
                [TensorPlan("ids", ("batch", 3, "sequence"), words)] if "MultipleChoice" in type(model).__name__ else []
            )
            return [
                *choices,
                TensorPlan("ids", TEXT, words),
                *stacked,
                TensorPlan("ids", ("batch", positions), words),
            ]
        case "inputs":
            return [
                TensorPlan("ids", TEXT, words),
                TensorPlan("float", (*TEXT, find(config, "d_model") or 32)),
                TensorPlan("float", ("batch", "samples")),
            ]
        case "decoder_input_ids" | "labels":
            return [TensorPlan("ids", ("batch", "target"), words)]
        case "decoder_attention_mask":
            return [TensorPlan("mask", ("batch", "target"))]
        case "attention_mask" if "input_values" in names:
            return [TensorPlan("mask", ("batch", "samples"))]
        case "attention_mask" | "padding_mask" | "input_features_mask" | "feature_attention_mask" if (
            "input_features" in names
        ):
            return [TensorPlan("ones", ("batch", "frames")), TensorPlan("true", ("batch", "frames"))]
        case "attention_mask" | "text_attention_mask":
            if "MultipleChoice" in type(model).__name__:
                return [TensorPlan("ones", ("batch", 3, "sequence"))]
            return [TensorPlan("mask", TEXT)]
        case "token_type_ids" | "position_ids":
            return [TensorPlan("zeros", TEXT)]
        case "bbox":
            return [TensorPlan("boxes", (*TEXT, 4)), TensorPlan("unit", (*TEXT, find(config, "dim_bbox") or 8))]
        case "pixel_values" | "flattened_patches" | "image" | "images" | "pixel_values_images":
            picture = TensorPlan("float", ("batch", channels, "height", "width"))
            fixed = TensorPlan("float", ("batch", channels, height, width))
            clip = find(config, "num_frames", "frames_per_clip") or 4
            video = TensorPlan("float", ("batch", clip, channels, height, width))
            tiles = TensorPlan("float", ("batch", 1, channels, height, width))
            patch = find(config, "patch_size") or 16
            patch = patch if isinstance(patch, int) else patch[0]
            extra = 2 if name == "flattened_patches" else 0
            flat = TensorPlan("patches" if extra else "float", ("batch", 16, channels * patch * patch + extra))
            pair = TensorPlan("float", ("batch", 2, channels, "height", "width"))
            return [picture, fixed, video, tiles, pair, flat]
        case "pixel_values_videos" | "videos" | "pixel_values_video":
            clip = find(config, "num_frames", "frames_per_clip") or 4
            return [
                TensorPlan("float", ("batch", clip, channels, height, width)),
                TensorPlan("float", ("batch", channels, clip, height, width)),
            ]
        case "pixel_mask":
            return [
                TensorPlan("ones", ("batch", "height", "width")),
                TensorPlan("ones", ("batch", height, width)),
            ]
        case "input_features":
            first = (
                [TensorPlan("float", ("batch", mels, 2 * frames))] if isinstance(frames, int) and frames < 2000 else []
            )
            return [
                *first,
                TensorPlan("float", ("batch", mels, "frames")),
                TensorPlan("float", ("batch", "frames", mels)),
                TensorPlan("float", ("batch", 1, "frames", mels)),
                TensorPlan("float", ("batch", 2 * mels // 2, 3000)),
            ]
        case "input_values" | "waveform" | "audio" | "audio_values":
            channels = find(config, "audio_channels") or 1
            return [
                TensorPlan("float", ("batch", "samples")),
                TensorPlan("float", ("batch", channels, "samples")),
                TensorPlan("float", ("batch", find(config, "max_length") or 64, mels)),
                TensorPlan("ids", TEXT),
            ]
        case "spectrogram" | "inputs_embeds" | "hidden_states" | "encoder_hidden_states":
            return [
                TensorPlan(
                    "float", (*TEXT, find(config, "hidden_size", "d_model", "model_in_dim", "num_mel_bins") or 32)
                ),
                TensorPlan("float", ("batch", mels, "frames")),
            ]
        case "past_values":
            length, inputs = find(config, "context_length") or 16, find(config, "num_input_channels", "input_size") or 1
            lags = find(config, "lags_sequence")
            length += max(lags) if lags else 0
            return [TensorPlan("float", ("batch", length, inputs)), TensorPlan("float", ("batch", length))]
        case "past_time_features" | "past_observed_mask":
            length = find(config, "context_length") or 16
            lags = find(config, "lags_sequence")
            length += max(lags) if lags else 0
            return [
                TensorPlan("float", ("batch", length, find(config, "num_time_features") or 1))
                if "time" in name
                else TensorPlan("float_mask", ("batch", length))
            ]
        case "future_values" | "future_time_features":
            length = find(config, "prediction_length") or 4
            return [
                TensorPlan(
                    "float",
                    ("batch", length)
                    if name == "future_values"
                    else ("batch", length, find(config, "num_time_features") or 1),
                )
            ]
        case "input_points":
            return [TensorPlan("unit", ("batch", "boxes", 1, 2))]
        case "codes" | "audio_codes":
            return [TensorPlan("ids", ("batch", find(config, "num_codebooks", "num_quantizers") or 4, "frames"), (32,))]
        case "visual_feats":
            return [TensorPlan("float", ("batch", "boxes", find(config, "visual_feat_dim") or 32))]
        case "visual_pos":
            return [TensorPlan("unit", ("batch", "boxes", 4))]
    if re.search(r"(^|_)ids$", name):
        return [TensorPlan("ids", TEXT, words)]
    if name.endswith("_mask"):
        return [TensorPlan("mask", TEXT)]
    return [TensorPlan("float", (*TEXT, find(config, "hidden_size") or 32))] if is_main else []


def _with_pictures(model: Any, parameters: Mapping[str, Any], wanted: list[str]) -> Iterator[CallPlan]:
    """Text behind a picture: as many image tokens as the model itself makes of a picture."""
    token = next(
        (getattr(model.config, name) for name in IMAGE_TOKENS if isinstance(getattr(model.config, name, None), int)),
        None,
    )
    ask = getattr(model, "get_image_features", None) or getattr(
        getattr(model, "model", None), "get_image_features", None
    )
    if token is None or ask is None or not {"pixel_values", "input_ids"} <= set(parameters):
        return
    sizes = _example_sizes(model.config)
    height, width = image_size(model.config)
    for given in _picture_arguments(model.config, parameters, height, width):
        few = CallPlan(given, sizes)
        try:
            with torch.no_grad():
                features = ask(**few.inputs(0, {"batch": 1}))
        except Exception:  # noqa: BLE001 another form of the picture, then
            continue
        count = _rows(features)
        if not count or count > 2048:
            continue
        length = count + 6
        words = {
            "input_ids": TensorPlan("image_ids", TEXT, (token, count)),
            **({"attention_mask": TensorPlan("ones", TEXT)} if "attention_mask" in parameters else {}),
        }
        mm = (
            {"mm_token_type_ids": TensorPlan("image_types", TEXT, (1, count))}
            if "mm_token_type_ids" in parameters
            else {}
        )
        for more in [mm, {}] if mm else [{}]:
            yield CallPlan({**words, **given, **more}, {**sizes, "sequence": length}, {"sequence": count + 2})


def _picture_arguments(
    config: Any, parameters: Mapping[str, Any], height: int, width: int
) -> Iterator[dict[str, TensorPlan]]:
    channels = find(config, "num_channels", "in_channels") or 3
    channels = channels if isinstance(channels, int) and channels <= 16 else 3
    picture = TensorPlan("float", ("batch", channels, height, width))
    tiles = TensorPlan("float", ("batch", 1, channels, height, width))
    if "image_grid_thw" in parameters:
        patch = find(config, "patch_size") or 14
        depth = find(config, "temporal_patch_size") or 1
        patch = patch if isinstance(patch, int) else patch[0]
        for deep in (depth, 1):
            flat = TensorPlan("float", ("16*batch", channels * deep * patch * patch))
            yield {"pixel_values": flat, "image_grid_thw": TensorPlan("grid", ("batch", 3), (1, 4, 4))}
    sizes = {"image_sizes": TensorPlan("grid", ("batch", 2), (height, width))} if "image_sizes" in parameters else {}
    if "pixel_attention_mask" in parameters:
        yield {"pixel_values": tiles, "pixel_attention_mask": TensorPlan("true", ("batch", 1, height, width))}
    yield {"pixel_values": picture}
    yield {"pixel_values": tiles}
    if sizes:
        yield {"pixel_values": picture, **sizes}
        yield {"pixel_values": tiles, **sizes}
        yield {"pixel_values": TensorPlan("float", ("batch", 3, channels, height, width)), **sizes}


def _rows(features: Any) -> int:
    """How many tokens one picture is."""
    found = getattr(features, "pooler_output", None)
    found = features if found is None else found
    if isinstance(found, list | tuple):
        return sum(_rows(each) for each in found if isinstance(each, torch.Tensor))
    return int(found.numel() // found.shape[-1]) if isinstance(found, torch.Tensor) and found.dim() else 0


def image_size(config: Any) -> tuple[int, int]:
    size = find(config, "image_size", "img_size", "input_size", "pretrain_image_size")
    if isinstance(size, list | tuple) and len(size) >= 2:
        return int(size[-2]), int(size[-1])
    return (size, size) if isinstance(size, int) and size > 8 else (64, 64)


def find(config: Any, *names: str) -> Any:
    """Of this configuration, or of the first nested one that has it."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None and not (isinstance(value, int | float) and value == 0):
            return value
    nested = [value for value in vars(config).values() if hasattr(value, "to_dict")]
    for inner in nested:
        if (found := find(inner, *names)) is not None:
            return found
    return None
