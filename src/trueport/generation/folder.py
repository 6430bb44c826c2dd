"""The folder that is written: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trueport import temporary
from trueport.diagnostics.spelling import Option, told
from trueport.load.faults import usage_error

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".data", ".gguf", ".index.json")
"""What the graphs hold in another form, and is not copied."""

_GRAPHS = ("model.onnx", "decoder_model.onnx")
"""One of these is in each folder that was written here."""


def refuse_folder(folder: Path, overwrite: bool) -> None:
    """Raise UsageError where a folder cannot be written, or holds something that is not to be replaced."""
    if folder.exists() and not folder.is_dir():
        raise usage_error(f"{folder} is a file", fix="name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        if not overwrite:
            fix = told("pass ", Option("overwrite=True", "--force"), " to replace it, or choose another")
            raise usage_error(f"{folder} is not empty", fix=fix)
        if not any((folder / name).is_file() for name in _GRAPHS) or folder.is_mount():
            message = f"{folder} holds no export for generation, and is not replaced with all that is in it"
            raise usage_error(message, fix="choose another folder, or empty this one")
    if not folder.parent.is_dir():
        raise usage_error(f"the folder of {folder} does not exist", fix=f"mkdir -p {folder.parent}")
    if not os.access(folder.parent, os.W_OK):
        raise usage_error(f"the folder {folder.parent} cannot be written to", fix="choose another path")


@contextlib.contextmanager
def written(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to write into, which takes its place when all is well; what was there before goes only then."""
    folder = Path(os.path.realpath(folder))
    refuse_folder(folder, overwrite)
    with temporary.folder(folder.parent) as made:
        new = made / "new"  # a folder of its own: the one around it is locked
        new.mkdir()
        yield new
        refuse_folder(folder, overwrite)  # somebody may have written there meanwhile
        if folder.is_dir():
            folder.rename(made / "old")
        new.rename(folder)


def copy_settings(model: Any, source: Path | None, target: Path) -> None:
    """Config and tokenizer: every small file that lies beside the weights, and what the model itself says."""
    for file in sorted(source.iterdir()) if source is not None else ():
        if file.is_file() and not file.name.startswith(".") and not file.name.endswith(_WEIGHTS):
            shutil.copy(file, target / file.name)
    model.config.to_json_file(target / "config.json")
    habits = target / "generation_config.json"
    if not habits.exists():  # as it is: save_pretrained() refuses what it finds odd, and these are the user's settings
        model.generation_config.to_json_file(habits)
