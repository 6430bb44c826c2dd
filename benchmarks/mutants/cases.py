"""What is measured: small models as users write them, and for each the ways in which its file is made wrong."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.mutants import kinds
from benchmarks.mutants.edit import Edit

Call = tuple[Any, ...]
Change = Callable[[Edit], None]


@dataclass(frozen=True)
class Mutant:
    """One wrong file. The witness is never shown to what is measured: it proves that the file is wrong."""

    kind: str
    name: str
    change: Change
    witness: Callable[[], Call]


@dataclass(frozen=True)
class Model:
    name: str
    """`family.model`"""
    build: Callable[[], torch.nn.Module]
    example: Callable[[], Call]
    free: Any = None
    """`dynamic_shapes`: one entry per argument, `{axis: name}`."""
    mutants: Sequence[Mutant] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """`value_ranges`, by the name of the argument."""
    exporter: str = "trueport"
    """Who writes the file that is then made wrong."""
    others: Sequence[str] = ("dynamo",)
    """Exporters whose own file serves as a control."""

    def built(self) -> torch.nn.Module:
        """Seeded by its name, so that neither the order of the list nor what ran before matters."""
        torch.manual_seed(zlib.crc32(self.name.encode()))
        return self.build().eval()

    def call(self, make: Callable[[], Call]) -> Call:
        torch.manual_seed(zlib.crc32(self.name.encode()) + 1)
        return make()


@dataclass(frozen=True)
class Case:
    """One file to verify: a mutant of a model, or a control."""

    model: str
    kind: str
    name: str

    @property
    def control(self) -> bool:
        return self.kind == kinds.CONTROL

    @property
    def id(self) -> str:
        return f"{self.model}/{self.name}"

    @property
    def family(self) -> str:
        return self.model.split(".")[0]
