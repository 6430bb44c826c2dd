"""Tensors from files: .npy, .npz, .safetensors and torch's .pt. Nothing that is read can run code."""

from __future__ import annotations

import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueport.errors import UsageError
from trueport.load.faults import usage_error
from trueport.torch_internals import messages

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
    except UsageError:
        raise
    except Exception as wrong:  # noqa: BLE001  what a library raises about a damaged file can be anything
        if isinstance(wrong, pickle.UnpicklingError) and _is_whole_pickle(path):
            raise usage_error(
                f"{path} holds Python objects beside tensors, and loading those may run any code: {_first_line(wrong)}",
                fix=_CONVERT.format(path=path),
            ) from None
        raise usage_error(
            f"{path} cannot be read: {_first_line(wrong)}",
            fix="the file is damaged, or of another kind than its name says: save it again",
        ) from None


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _tensor(np.load(path, allow_pickle=False))
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: _tensor(archive[name]) for name in archive.files}
    if suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if suffix in TORCH_SUFFIXES:
        return torch.load(path, map_location="cpu", weights_only=True)
    raise usage_error(f"{path} is of no kind that can be read", fix="use .npy, .npz, .safetensors or .pt")


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))


def _is_whole_pickle(path: Path) -> bool:
    """Whether the file can be walked through as a pickle, which runs nothing: what cannot be is damaged."""
    try:
        if not zipfile.is_zipfile(path):
            pickled = path.read_bytes()
        else:
            with zipfile.ZipFile(path) as archive:
                pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
        return any(True for _ in pickletools.genops(pickled))
    except Exception:  # noqa: BLE001  the same holds here
        return False


def _first_line(error: Exception) -> str:
    return messages.refused_by_load(str(error)) or type(error).__name__
