"""The little language of `-i`.

x:2x3xHxW            a tensor; capitals are free sizes
mask:Bx(P+S)         an axis as long as a formula of free sizes says
batch.text.ids:BxS   inside an argument: a dict, or what forward's annotation says; items of a list are 0, 1, 2
x:2x3:f16            with a dtype
ids:BxS:i64@0..999   with the range of its values
n:i64=3              a tensor without axes, of this value
n=3  p=0.5  on=true  a Python number (also none, and text for anything else)
x=@file.npy          from a file; x=@file.npz:key for one of several
x:BxSx3=@file.npy    from a file, with names for its free sizes
2x3xHxW              without a name: the next parameter of forward
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import torch

from trueport.load.faults import usage_error
from trueport.load.formulas import names_in

Axis = int | str
DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "bool": torch.bool, "c64": torch.complex64, "c128": torch.complex128,
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
    "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "uint8": torch.uint8, "complex64": torch.complex64, "complex128": torch.complex128,
    "half": torch.float16, "float": torch.float32, "double": torch.float64, "int": torch.int32, "long": torch.int64,
}  # fmt: skip
_AXIS = re.compile(r"\d+|[A-Z]\w*|\([\w\s+*/()-]+\)")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf)"
_WAYS = "write it like x:2x3xHxW, ids:BxS:i64@0..999, n=3 or x=@file.npy"


@dataclass(frozen=True)
class InputSpec:
    """One `-i`, read but not yet drawn or loaded. `shape` is None where the value says it all."""

    text: str
    name: str | None = None
    shape: tuple[Axis, ...] | None = None
    dtype: torch.dtype | None = None
    value_range: tuple[float, float] | None = None
    value: str | None = None
    """What stands after `=`."""


def read_spec(text: str, parameters: Collection[str]) -> InputSpec:
    """Read one `-i`. A first word that could be a name or a free size is a name if forward has such a parameter."""
    whole = next((name for name in sorted(parameters, key=len, reverse=True) if _begins(text.strip(), name)), None)
    if whole is not None and not re.fullmatch(r"[^\W\d]\w*", whole):  # a file may call its inputs anything
        rest = read_spec(f"x{text.strip()[len(whole) :]}", ("x",))
        return replace(rest, text=text, name=whole)
    declared, is_value, value = text.strip().partition("=")
    declared, has_range, bounds = declared.partition("@")
    if not is_value and not declared and has_range:  # `@file.npy`: the next parameter, from a file
        return InputSpec(text, value=f"@{bounds}")
    if is_value and not declared:  # `=5`: the next parameter, of this value
        return InputSpec(text, value=value.strip())
    name, shape, dtype = _read_declaration(text, declared.strip(), parameters, bool(is_value))
    value_range = _read_range(text, bounds) if has_range else None
    if not is_value:
        return InputSpec(text, name, shape if shape is not None else (), dtype, value_range)
    return InputSpec(text, name, shape, dtype, value_range, value.strip())


def _begins(text: str, name: str) -> bool:
    return bool(name) and text.startswith(name) and text[len(name) : len(name) + 1] in (":", "=")


def _read_declaration(
    text: str, declared: str, parameters: Collection[str], is_value: bool
) -> tuple[str | None, tuple[Axis, ...] | None, torch.dtype | None]:
    words = [word.strip() for word in declared.split(":")]
    name: str | None = None
    first = words[0]
    if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", first) and (
        first in parameters or not _is_shape(first) or len(words) == 3 or (len(words) == 2 and _is_shape(words[1]))
    ):
        name = words.pop(0)
    shape = _read_shape(words.pop(0)) if words and _is_shape(words[0]) else None
    dtype = DTYPES.get(words.pop(0).removeprefix("torch.")) if words and _is_dtype(words[0]) else None
    if words or (shape is None and dtype is None and not is_value):
        wrong = repr(words[0]) if words and words[0] else "what there is"
        raise usage_error(f"-i {text}: {wrong} is neither a shape nor a dtype", fix=f"{_WAYS}; dtypes: {_dtypes()}")
    if dtype is not None and shape is None:
        shape = ()
    return name, shape, dtype


def _is_shape(word: str) -> bool:
    return bool(word) and all(_AXIS.fullmatch(axis) and (axis.isdigit() or names_in(axis)) for axis in _axes(word))


def _is_dtype(word: str) -> bool:
    return word.removeprefix("torch.") in DTYPES


def _axes(word: str) -> list[str]:
    return re.split(r"x(?=[0-9A-Z(])", word)


def _read_shape(word: str) -> tuple[Axis, ...]:
    return tuple(int(axis) if axis.isdigit() else axis[1:-1] if axis[0] == "(" else axis for axis in _axes(word))


def _read_range(text: str, bounds: str) -> tuple[float, float]:
    match = re.fullmatch(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*", bounds, flags=re.IGNORECASE)
    if match is None:
        raise usage_error(f"-i {text}: {bounds!r} is not a range of values", fix="write it as @0..999")
    low, high = float(match[1]), float(match[2])
    if low > high:
        raise usage_error(f"-i {text}: the range is empty, {match[1]} is more than {match[2]}")
    return low, high


def _dtypes() -> str:
    return ", ".join(name for name in DTYPES if len(name) <= 4)
