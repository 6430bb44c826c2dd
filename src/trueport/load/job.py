"""What is to be exported: the model, its inputs one leaf at a time, and which sizes are free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.load.structures import Structure
from trueport.load.values import LeafKind, spelt


@dataclass(frozen=True, slots=True)
class FreeSize:
    """A size that the user declared free, with the range in which it may move.

    `auto` marks a size that the user left to us (`Dim.AUTO`): freezing it is told, not refused.
    """

    name: str
    minimum: int = 0
    maximum: int | None = None
    auto: bool = False

    def admits(self, size: int) -> bool:
        return size >= self.minimum and (self.maximum is None or size <= self.maximum)


@dataclass(frozen=True, slots=True)
class AxisSize:
    """A free axis of an input: `multiple * size + offset` (`2 * Dim("half") + 1` is a derived axis)."""

    size: FreeSize
    multiple: int = 1
    offset: int = 0

    def length(self, size: int) -> int:
        return self.multiple * size + self.offset


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the flattened (args, kwargs)."""

    name: str
    kind: LeafKind
    value: object
    path: str = ""
    """How a user would write it, e.g. `batch["ids"]`."""
    axes: Mapping[int, AxisSize] = field(default_factory=dict)
    value_range: tuple[float, float] | None = None
    """Declared by `@low..high` on the command line; None means "as seen in the example"."""
    declared_free: bool = False
    """A number that `dynamic_shapes` names (`Dim.DYNAMIC`): an exporter that fixes its value breaks a promise."""

    @property
    def is_input(self) -> bool:
        return self.kind is not LeafKind.CONSTANT


@dataclass(frozen=True)
class Job:
    """Everything that the later rooms need to know of the request. The order of leaves is the order of inputs."""

    model: torch.nn.Module
    leaves: tuple[Leaf, ...]
    call: Structure
    """Rebuilds `(args, kwargs)` from one value per leaf."""
    output_names: tuple[str, ...] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was found about the arguments themselves; `examine` hands them on."""

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.is_input)

    @property
    def constants(self) -> dict[str, str]:
        """The arguments that are baked in, as Python shows them."""
        return {leaf.name: spelt(leaf.value) for leaf in self.leaves if not leaf.is_input}

    @property
    def free_sizes(self) -> tuple[FreeSize, ...]:
        seen = {axis.size.name: axis.size for leaf in self.leaves for axis in leaf.axes.values()}
        return tuple(seen.values())
