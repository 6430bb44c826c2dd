"""The values of inputs from the command line: drawn, read from a file, or written out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from trueport.load.faults import usage_error
from trueport.load.files import read_tensors
from trueport.load.spec_text import DTYPES, InputSpec

_DEFAULT_INTEGERS = (0, 9)


def draw(spec: InputSpec, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """A tensor of the declared dtype with values in the declared range; without one, normal or small whole numbers."""
    dtype = spec.dtype or torch.float32
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        if spec.value_range is None:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, generator=generator, dtype=wide).to(dtype)
        low, high = spec.value_range
        return (low + (high - low) * torch.rand(shape, generator=generator)).to(dtype)
    first, last = spec.value_range or _DEFAULT_INTEGERS
    return torch.randint(int(first), int(last) + 1, shape, generator=generator).to(dtype)


def given_value(spec: InputSpec, path: str) -> Any:
    """What stands after `=`: a file, or a Python value."""
    text = spec.value or ""
    if text.startswith("@"):
        loaded = _from_file(spec, path, text[1:])
        return loaded.to(spec.dtype) if isinstance(loaded, torch.Tensor) and spec.dtype else loaded
    if _meant_as_tensor(text):
        raise usage_error(
            f"-i {spec.text}: what follows `=` is a value, and {text!r} looks like the kind of a tensor",
            fix=f"write {spec.name or 'x'}:2x3:f32 for a tensor (capitals are free sizes); put a text into quotes",
        )
    number = _python_value(text)
    if spec.dtype is None:
        return number
    if spec.shape:
        raise usage_error(f"-i {spec.text}: a tensor with axes cannot be given as one value", fix="use a file: =@x.npy")
    if not isinstance(number, (bool, int, float)):
        raise usage_error(f"-i {spec.text}: {text!r} is not a number")
    return torch.tensor(number, dtype=spec.dtype)


def _meant_as_tensor(text: str) -> bool:
    """`float32[3,4]`, `[3, 4]`, `(1, 3)`, `2x3xH` or `f16`, where the model would otherwise be given a text."""
    kind, bracket, rest = text.partition("[" if "[" in text else "(")
    if bracket and rest.endswith(("]", ")")):
        return not kind or kind.removeprefix("torch.") in DTYPES
    return text in DTYPES or bool(re.fullmatch(r"\d+(x(\d+|[A-Z]\w*))+", text))


def _python_value(text: str) -> Any:
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("none", "null"):
        return None
    if re.fullmatch(r"[-+]?\d+", word):
        return int(word)
    try:
        return float(word)
    except ValueError:
        return text.strip().strip("\"'")


def _from_file(spec: InputSpec, path: str, where: str) -> Any:
    file, key = where, ""
    if not Path(where).is_file() and ":" in where:
        file, _, key = where.rpartition(":")
    loaded = read_tensors(Path(file))
    if not isinstance(loaded, dict):
        return loaded
    key = key or (path if path in loaded else next(iter(loaded)) if len(loaded) == 1 else "")
    if key in loaded:
        return loaded[key]
    if Path(file).suffix.lower() not in (".npz", ".safetensors"):
        return loaded  # a dict that was saved as an argument
    raise usage_error(
        f"-i {spec.text}: {file} holds {', '.join(loaded)}; which one is {path}?",
        fix=f"{path}=@{file}:{next(iter(loaded))}",
    )
