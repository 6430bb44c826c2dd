"""A model to export for generation: as it is, or read from a local folder. Nothing is downloaded."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from trueport.generation.lora import Adapters, with_adapters
from trueport.load.faults import usage_error


def loaded(model: object, dtype: str, lora: Adapters | None = None) -> tuple[Any, Path | None]:
    """The model, ready to run, with its adapters in it, and the folder it came from."""
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError:
        fix = "pip install 'trueport[generation]'"
        raise usage_error("export for generation needs transformers, which is not installed", fix=fix) from None
    if isinstance(model, (str, os.PathLike)):
        folder = Path(model)
        return with_adapters(_read(transformers, folder, dtype).eval(), lora), folder
    model = with_adapters(model, lora)
    if not isinstance(model, transformers.PreTrainedModel) or not model.can_generate():
        name = type(model).__name__
        raise usage_error(f"{name} is no model of transformers that generates", fix="use trueport.export")
    if model.training:
        raise usage_error(f"{type(model).__name__} is in training mode", fix="model.eval()")
    if model.device.type != "cpu":
        raise usage_error(f"{type(model).__name__} is on {model.device}", fix='model.to("cpu")')
    return model, None


def _read(transformers: Any, folder: Path, dtype: str) -> Any:
    if not (folder / "config.json").is_file():
        raise usage_error(f"{folder} has no config.json", fix="name a local folder with config.json and safetensors")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        kind = getattr(transformers, (config.architectures or [""])[0], None)
        if kind is None:
            raise usage_error(f"config.json of {folder} names no architecture that transformers has")
        return kind.from_pretrained(folder, local_files_only=True, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError) as wrong:
        raise usage_error(f"{folder} cannot be read: {wrong}") from wrong
