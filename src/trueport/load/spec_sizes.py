"""The free sizes of inputs from the command line, and the length that each gets in the example."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim

from trueport.load.faults import close_to, usage_error
from trueport.load.formulas import computed, names_in, solved
from trueport.load.spec_text import Axis, InputSpec

Range = tuple[int | None, int | None] | str
"""The smallest and the largest that a size may be, or the formula that it is of others."""

# Distinct primes, so that no two sizes of an example are equal or multiples by chance; pictures get room for strides.
_SMALL = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
_PICTURE = (32, 40, 48, 56, 64, 72)


class SpecSizes:
    """The free sizes by name: their ranges, and the length that each has in the example."""

    def __init__(self, ranges: Mapping[str, Range]) -> None:
        self._ranges = {name: given for name, given in ranges.items() if not isinstance(given, str)}
        self._formulas = {name: given for name, given in ranges.items() if isinstance(given, str)}
        self._lengths: dict[str, int] = {}
        self._fixed: set[int] = set()
        self._dims: dict[str, Any] = {}

    def learn(self, spec: InputSpec, loaded: object) -> None:
        """Settle the sizes that a file gives, and choose the others."""
        shape = self._shape(spec)
        self._fixed |= {axis for axis in shape if isinstance(axis, int)}
        if isinstance(loaded, torch.Tensor) and spec.shape:
            self._learn_from_file(spec, tuple(loaded.shape))
        for i, axis in enumerate(shape):
            for name in names_in(axis) or () if isinstance(axis, str) else ():
                if name not in self._lengths:
                    picture = len(shape) >= 4 and i >= len(shape) - 2
                    self._lengths[name] = self._choose(name, _PICTURE if picture else _SMALL)

    def _shape(self, spec: InputSpec) -> list[Axis]:
        return [self._formulas.get(axis, axis) if isinstance(axis, str) else axis for axis in spec.shape or ()]

    def _learn_from_file(self, spec: InputSpec, actual: tuple[int, ...]) -> None:
        shape = self._shape(spec)
        if len(shape) != len(actual):
            raise usage_error(f"-i {spec.text}: the file holds a tensor of shape {list(actual)}")
        given = [*self._lengths.items(), *zip(shape, actual, strict=True)]
        told = solved((axis, names_in(axis) or (), length) for axis, length in given if isinstance(axis, str))
        self._lengths = {**told, **self._lengths}
        for axis, length in zip(shape, actual, strict=True):
            missing = set(names_in(axis) or ()) - self._lengths.keys() if isinstance(axis, str) else ()
            if missing:
                raise usage_error(f"-i {spec.text}: nothing before it tells {', '.join(sorted(missing))}")
            known = self._length(axis)
            if known != length:
                raise usage_error(f"-i {spec.text}: {axis} is {known}, but the file holds {list(actual)}")

    def _choose(self, name: str, usual: Sequence[int]) -> int:
        low, high = self._ranges.get(name, (None, None))
        lowest = low or 0
        highest = high if high is not None else max(lowest, usual[-1]) + 64
        used = self._fixed | set(self._lengths.values())
        inside = [n for n in (*usual, *_SMALL, *range(max(lowest, 2), highest + 1)) if lowest <= n <= highest]
        return next((n for n in inside if n not in used), inside[0] if inside else lowest)

    def check_ranges(self) -> None:
        for name in self._ranges:
            if name not in self._lengths:
                raise usage_error(
                    f"--dim names {name!r}, which is no free size of the inputs", fix=close_to(name, self._lengths)
                )

    def lengths(self, spec: InputSpec) -> list[int]:
        return [self._length(axis) for axis in self._shape(spec)]

    def _length(self, axis: Axis) -> int:
        return int(computed(axis, self._lengths)) if isinstance(axis, str) else axis

    def free_axes(self, spec: InputSpec) -> dict[int, Any]:
        axes = {i: axis for i, axis in enumerate(self._shape(spec)) if isinstance(axis, str)}
        return {i: dim for i, axis in axes.items() if (dim := self._dim(axis)) is not None}

    def _dim(self, name: str) -> Any:
        """One Dim per name; None for a range of a single size, which is not free. A formula stays one."""
        names = names_in(name) or ()
        if name not in names:
            for fixed in (each for each in names if self._dim(each) is None):
                name = re.sub(rf"\b{fixed}\b", str(self._lengths[fixed]), name)
            return name if names_in(name) else None
        if name not in self._dims:
            low, high = self._ranges.get(name, (None, None))
            single = high is not None and (low or 0) == high
            self._dims[name] = None if single else Dim(name, min=low, max=high)
        return self._dims[name]
