"""`--weights FILE`: fills a model from a state dict, and says exactly what does not fit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from trueport.load.faults import usage_error
from trueport.load.files import TORCH_SUFFIXES, read_tensors

_CHECKPOINT_KEYS = ("state_dict", "model_state_dict", "model")
_WRAPPER_PREFIXES = ("module.", "_orig_mod.", "model.")
_LISTED = 6


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> None:
    """Load a state dict into `model`. Raises UsageError when the file or the names and shapes in it do not fit."""
    file = Path(path)
    if file.suffix.lower() not in TORCH_SUFFIXES | {".safetensors"}:
        raise usage_error(f"{file} is no file of weights", fix="use .safetensors, .pt or .pth")
    own = model.state_dict(keep_vars=True)
    weights = _state_dict_in(read_tensors(file), file)
    _refuse_odd_entries(file, weights)
    weights = _without_wrapper(weights, own)
    _refuse_mismatch(file, own, weights)
    _refuse_odd_kinds(file, own, weights)
    on_meta = any(tensor.is_meta for tensor in own.values() if isinstance(tensor, torch.Tensor))
    model.load_state_dict(weights, strict=False, assign=on_meta)


def _state_dict_in(loaded: Any, file: Path) -> dict[str, Any]:
    """The state dict itself, or the one that a training script's checkpoint holds."""
    if isinstance(loaded, Mapping):
        for key in _CHECKPOINT_KEYS:
            if isinstance(loaded.get(key), Mapping):
                return dict(loaded[key])
        if not loaded or any(isinstance(value, torch.Tensor) for value in loaded.values()):
            return dict(loaded)  # of a model without weights, an empty one
    raise usage_error(
        f"{file} holds a {type(loaded).__name__}, not a state dict",
        fix="save one with torch.save(model.state_dict(), path)",
    )


def _refuse_odd_entries(file: Path, weights: Mapping[Any, Any]) -> None:
    odd = [repr(name) for name in weights if not isinstance(name, str)]
    if odd:
        raise usage_error(
            f"{file} has {_listed(odd)} among the names of its tensors, and those of a state dict are texts",
            fix="save one with torch.save(model.state_dict(), path)",
        )


def _refuse_odd_kinds(file: Path, own: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    """What would be refused by torch in words about itself, or be made into something else without a word."""
    odd = []
    for name, given in weights.items():
        wanted = own.get(name)
        if not isinstance(wanted, torch.Tensor):
            continue  # the extra state of a module: whatever the module makes of it
        if not isinstance(given, torch.Tensor):
            odd.append(f"{name} is a {type(given).__name__}, not a tensor")
        elif given.is_meta:
            odd.append(f"{name} has no values: it was saved from the meta device")
        elif given.layout is not wanted.layout:
            odd.append(f"{name} is {_word(given.layout)} in the file and {_word(wanted.layout)} in the model")
        elif not torch.can_cast(given.dtype, wanted.dtype):
            odd.append(f"{name} is {_word(given.dtype)} in the file and {_word(wanted.dtype)} in the model")
    if odd:
        raise usage_error(
            f"{file} does not fit the model: {len(odd)} of another kind",
            seen=[_listed(odd)],
            fix="save the state dict of a model of this kind: torch.save(model.state_dict(), path)",
        )


def _word(kind: object) -> str:
    return str(kind).removeprefix("torch.")


def _without_wrapper(weights: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Names as the bare model has them, when it was saved inside DataParallel, torch.compile or a trainer."""
    for prefix in _WRAPPER_PREFIXES:
        if weights and all(name.startswith(prefix) for name in weights):
            bare = {name.removeprefix(prefix): value for name, value in weights.items()}
            if len(bare.keys() & own.keys()) > len(weights.keys() & own.keys()):
                return _without_wrapper(bare, own)
    return weights


def _refuse_mismatch(file: Path, own: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    given = {id(own[name]) for name in weights if name in own}
    missing = [name for name, tensor in own.items() if name not in weights and id(tensor) not in given]  # tied: once
    unexpected = [name for name in weights if name not in own]
    shapes = [
        f"{name} is {list(weights[name].shape)} in the file and {list(tensor.shape)} in the model"
        for name, tensor in own.items()
        if isinstance(weights.get(name), torch.Tensor) and tensor.shape != weights[name].shape
    ]
    if missing or unexpected or shapes:
        seen = [("missing in the file", missing), ("not in the model", unexpected), ("other shapes", shapes)]
        raise usage_error(
            f"{file} does not fit the model: {len(missing)} missing, {len(unexpected)} unexpected, "
            f"{len(shapes)} of another shape",
            seen=[f"{what}: {_listed(names)}" for what, names in seen if names],
            fix="make the model with the settings that the weights were trained with",
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
