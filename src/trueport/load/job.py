"""What is to be exported: the model, its inputs one leaf at a time, and which sizes are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.load.formulas import computed, solved
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
    """How long a free axis of an input is: a free size, or a formula of some (`2*half + 1`, `p + s`)."""

    formula: str
    sizes: tuple[FreeSize, ...]

    @classmethod
    def of(cls, size: FreeSize) -> AxisSize:
        return cls(size.name, (size,))

    @property
    def names(self) -> list[str]:
        return [size.name for size in self.sizes]

    @property
    def is_plain(self) -> bool:
        return self.formula == self.sizes[0].name

    def length(self, sizes: Mapping[str, Any]) -> Any:
        """Its length at these sizes, numbers or symbols of a trace; of others than its own, too."""
        return computed(self.formula, sizes)


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
    inside_object: bool = False
    """Found among the attributes of an object, and not confirmed by anybody: a number there may count the calls."""

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
    def flags(self) -> tuple[Leaf, ...]:
        """Bools among the inputs, of which nobody said that they are to be free."""
        return tuple(leaf for leaf in self.inputs if isinstance(leaf.value, bool) and not leaf.declared_free)

    def with_constants(self, kept: Sequence[Leaf], told: Diagnostic) -> Job:
        """The same with some of the inputs baked in."""
        leaves = (replace(leaf, kind=LeafKind.CONSTANT) if leaf in kept else leaf for leaf in self.leaves)
        return replace(self, leaves=tuple(leaves), diagnostics=(*self.diagnostics, told))

    def with_counters(self, counters: Sequence[Leaf], told: Sequence[Diagnostic]) -> Job:
        """The same with some numbers of objects as inputs; `told` is what is said of the arguments then."""
        leaves = (replace(leaf, kind=LeafKind.NUMBER) if leaf in counters else leaf for leaf in self.leaves)
        return replace(self, leaves=tuple(leaves), diagnostics=tuple(told))

    @property
    def free_sizes(self) -> tuple[FreeSize, ...]:
        seen = {size.name: size for leaf in self.leaves for axis in leaf.axes.values() for size in axis.sizes}
        return tuple(seen.values())


def sizes_in(leaves: Sequence[Leaf], values: Sequence[object]) -> dict[str, int]:
    """The value of each free size in these inputs."""
    return solved(
        (free.formula, free.names, value.shape[axis])
        for leaf, value in zip(leaves, values, strict=True)
        if isinstance(value, torch.Tensor)
        for axis, free in leaf.axes.items()
    )
