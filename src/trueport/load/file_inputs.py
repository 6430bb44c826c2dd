"""Example inputs for an ONNX file: those that `-i` describes, and for the others what the file itself says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.load.formulas import names_in
from trueport.load.spec_sizes import Range
from trueport.load.spec_text import Axis, InputSpec, read_spec
from trueport.load.specs import made


@dataclass(frozen=True, slots=True)
class FileInput:
    """An input as a file declares it. A size is a number, a name or a formula, or None where nothing is known."""

    name: str
    dtype: torch.dtype
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class FileArguments:
    """One value per input of the file, the free axes of each, and ranges of values by name."""

    values: tuple[Any, ...]
    free: tuple[dict[int, Any], ...]
    ranges: dict[str, tuple[float, float]]

    def as_call(self) -> dict[str, Any]:
        """As `make_job` takes them."""
        return {"args": self.values, "dynamic_shapes": self.free, "value_ranges": self.ranges}


def parse_file_inputs(
    inputs: Sequence[FileInput], specs: Sequence[str], dims: Mapping[str, Range] | None = None
) -> FileArguments:
    """The arguments that the specs describe. Raises UsageError."""
    names = [each.name for each in inputs]
    given: dict[str, InputSpec] = {}
    for text in specs:
        spec = read_spec(text, names)
        name = spec.name or next((each for each in names if each not in given), None)
        if name is None or name not in names:
            raise usage_error(f"-i {text}: the file has no such input", fix=close_to(spec.name or "", names))
        if name in given:
            raise usage_error(f"-i says twice what {name} is", fix="keep one")
        given[name] = spec
    named = {each.name: given.get(each.name) or _declared(each) for each in inputs}
    values, free, ranges = made(named, dims or {})
    return FileArguments(
        tuple(values[each.name] for each in inputs), tuple(free.get(each.name, {}) for each in inputs), ranges
    )


def _declared(port: FileInput) -> InputSpec:
    axes = tuple(_axis(port.name, at, size) for at, size in enumerate(port.shape))
    return InputSpec(f"{port.name} (as the file declares it)", port.name, axes, port.dtype)


def _axis(name: str, at: int, size: int | str | None) -> Axis:
    """A free size keeps its name; what is no name or formula of some gets one."""
    if isinstance(size, int):
        return size
    if size and names_in(size):
        return size
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_dim{at}".lstrip("0123456789_") or f"dim{at}"
