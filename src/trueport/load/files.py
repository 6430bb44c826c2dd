"""Tensors from files: .npy, .npz, .safetensors and torch's .pt. Nothing that is read can run code."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueport.load.faults import usage_error

TORCH_SUFFIXES = frozenset({".pt", ".pth", ".bin", ".ckpt"})
_CONVERT = (
    "if you trust the file, convert it once: "
    'torch.save(torch.load("{path}", weights_only=False).state_dict(), "weights.pt")'
)


def read_tensors(path: Path) -> Any:
    """A tensor, or a dict of tensors by name; from .pt whatever plain structure was saved."""
    if not path.is_file():
        raise usage_error(f"there is no file {path}")
    try:
        return _read(path)
    except pickle.UnpicklingError as wrong:
        raise usage_error(
            f"{path} holds Python objects beside tensors, and loading those may run any code: {_first_line(wrong)}",
            fix=_CONVERT.format(path=path),
        ) from None
    except (ValueError, OSError, RuntimeError, EOFError, zipfile.BadZipFile, _safetensors_error()) as wrong:
        raise usage_error(f"{path} cannot be read: {_first_line(wrong)}") from None


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return torch.from_numpy(np.load(path, allow_pickle=False))
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: torch.from_numpy(archive[name]) for name in archive.files}
    if suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if suffix in TORCH_SUFFIXES:
        return torch.load(path, map_location="cpu", weights_only=True)
    raise usage_error(f"{path} is of no kind that can be read", fix="use .npy, .npz, .safetensors or .pt")


def _safetensors_error() -> type[Exception]:
    from safetensors import SafetensorError

    found: type[Exception] = SafetensorError
    return found


def _first_line(error: Exception) -> str:
    """torch's refusals explain `weights_only` at length after the first sentences; what matters is the named global."""
    text = str(error)
    for line in text.splitlines():
        if "GLOBAL" in line or "Unsupported" in line:
            return line.split(". Please use", 1)[0].strip()
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
