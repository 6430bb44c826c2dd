"""The values of inputs from the command line: drawn, read from a file, or written out."""

from __future__ import annotations

import math
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
    _refuse_range(spec)
    try:
        return _drawn(spec, shape, generator)
    except (RuntimeError, MemoryError, ValueError, TypeError, OverflowError) as wrong:
        # torch has no error of its own for a tensor that is too large: the number of its bytes may even overflow.
        raise usage_error(
            f"-i {spec.text}: no tensor of this size can be made here, "
            f"it has {math.prod(shape):.3g} elements: {type(wrong).__name__}",
            fix="give a smaller size; a free one (a capital letter) is tried at several",
        ) from None


def _refuse_range(spec: InputSpec) -> None:
    """Whole numbers beyond their dtype would silently be others."""
    dtype = spec.dtype
    if spec.value_range is None or dtype is None or dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    if not all(least <= bound <= most for bound in spec.value_range):
        raise usage_error(
            f"-i {spec.text}: the range goes beyond {str(dtype).removeprefix('torch.')}",
            fix=f"it holds {least}..{most}",
        )


def _drawn(spec: InputSpec, shape: list[int], generator: torch.Generator) -> torch.Tensor:
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
    above = min(int(last) + 1, torch.iinfo(torch.int64).max)
    return torch.randint(int(first), above, shape, generator=generator).to(dtype)


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
    made = _exactly(number, spec.dtype)
    if made is None:
        kind = str(spec.dtype).removeprefix("torch.")
        raise usage_error(
            f"-i {spec.text}: {text} is no number of {kind}", fix="give one that it holds, or another dtype"
        )
    return made


def _exactly(number: bool | int | float, dtype: torch.dtype) -> torch.Tensor | None:
    """The number as a tensor; None where a whole dtype would make another number of it."""
    try:
        made = torch.tensor(number, dtype=dtype)
    except (ValueError, RuntimeError, OverflowError):
        return None
    whole = not (dtype.is_floating_point or dtype.is_complex)
    return None if whole and made.item() != number else made


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
