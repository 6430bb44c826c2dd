"""A model to export for generation: as it is, or read from a local folder. Nothing is downloaded."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from trueport.errors import UsageError
from trueport.examine.refusals import shortened
from trueport.generation.lora import Adapters, with_adapters
from trueport.load.faults import usage_error
from trueport.load.unwrap import unwrapped

_FOLDER = "name a local folder with config.json and safetensors"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")


def loaded(model: object, dtype: str, lora: Adapters | None = None) -> tuple[Any, Path | None]:
    """The model, ready to run, with its adapters in it, and the folder it came from."""
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError:
        fix = "pip install 'trueport[generation]'"
        raise usage_error("export for generation needs transformers, which is not installed", fix=fix) from None
    if isinstance(model, (str, os.PathLike)):
        folder = Path(model)
        read = _read(transformers, folder, dtype).eval()
        return _generates(transformers, with_adapters(read, lora)), folder
    made = _generates(transformers, with_adapters(unwrapped(model).module, lora))
    if made.training:
        raise usage_error(f"{type(made).__name__} is in training mode", fix="model.eval()")
    if made.device.type != "cpu":
        fix = "read its weights first" if made.device.type == "meta" else 'model.to("cpu")'
        raise usage_error(f"{type(made).__name__} is on {made.device}", fix=fix)
    return made, None


def _generates(transformers: Any, model: Any) -> Any:
    """The model, which has `generate()`. Raises UsageError where it has not."""
    name = type(model).__name__
    if not isinstance(model, transformers.PreTrainedModel) or not model.can_generate():
        fix = "give its model with a head that generates (a class such as …ForCausalLM), or use trueport.export"
        raise usage_error(f"{name} is no model of transformers that generates", fix=fix)
    return model


def _read(transformers: Any, folder: Path, dtype: str) -> Any:
    """The model of a folder. What lies in the folder is the user's, and what reads it another library's."""
    _refuse_unreadable(folder)
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        named = [str(name) for name in config.architectures or ()]
        kinds: list[Any] = [kind for name in named if isinstance(kind := getattr(transformers, name, None), type)]
        if not kinds or not issubclass(kinds[0], transformers.PreTrainedModel):
            message = f"config.json of {folder} names no architecture that transformers has"
            fix = 'add it ("architectures": ["LlamaForCausalLM"]), or make the model yourself and give that'
            raise usage_error(message, fix=fix, seen=[f"architectures: {', '.join(named) or 'none'}"])
        model, found = kinds[0].from_pretrained(
            folder,
            local_files_only=True,
            dtype=dtype,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except UsageError:
        raise
    except Exception as wrong:  # a config may be anything, and so may what reads it raise
        fix = "from_pretrained() of transformers must read it; or make the model yourself and give that"
        raise usage_error(f"{folder} cannot be read: {shortened(wrong)}", fix=fix) from wrong
    absent = sorted(found["missing_keys"])
    absent += [f"{name} ({list(here)}, not {list(made)})" for name, here, made in sorted(found["mismatched_keys"])]
    if absent:  # the library says so in its log, and goes on
        shown = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
        message = f"the safetensors of {folder} have no {shown}: the model would have random numbers there"
        raise usage_error(message, fix="complete them, or mend config.json so that it says what they are of")
    return model


def _refuse_unreadable(folder: Path) -> None:
    if not folder.is_dir():
        raise usage_error(f"{folder} is no local folder, and nothing is downloaded", fix=_FOLDER)
    if not (folder / "config.json").is_file():
        raise usage_error(f"{folder} has no config.json", fix=_FOLDER)
    files = sorted(file.name for file in folder.iterdir())
    if not any(name.endswith((".safetensors", ".safetensors.index.json")) for name in files):
        pickles = [name for name in files if name.endswith(_PICKLES)]
        why = f" ({pickles[0]} is a pickle, which can run any code when it is read)" if pickles else ""
        fix = "read the model where you trust it, and model.save_pretrained(folder)" if pickles else _FOLDER
        raise usage_error(f"{folder} has no safetensors{why}", fix=fix)
