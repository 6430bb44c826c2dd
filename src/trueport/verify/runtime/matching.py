"""Which input of a foreign file is which argument, and which of its outputs is which result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from trueport.load.formulas import computed, names_in
from trueport.load.job import AxisSize, FreeSize, Job, Leaf
from trueport.load.values import LeafKind
from trueport.verify.runtime.open_lists import fits
from trueport.verify.runtime.sandbox import Port
from trueport.verify.runtime.tensors import TensorData, dtype_of, from_torch


class DoesNotFit(Exception):
    """The file cannot be the model: its inputs or outputs are others."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a file, each with the place of its leaf among the job's leaves."""

    pairs: tuple[tuple[Port, int], ...]

    def feed(self, values: Sequence[object]) -> dict[str, TensorData]:
        """A Python number takes the dtype and the rank that the file declares for it."""
        feeds: dict[str, TensorData] = {}
        for port, at in self.pairs:
            value = values[at]
            if not isinstance(value, torch.Tensor):
                value = torch.tensor(value, dtype=getattr(torch, dtype_of(port.type))).reshape([1] * len(port.shape))
            feeds[port.name] = from_torch(value)
        return feeds

    def missing(self, job: Job) -> list[Leaf]:
        """Arguments that are no inputs of the file."""
        present = {at for _, at in self.pairs}
        return [leaf for at, leaf in enumerate(job.leaves) if leaf.is_input and at not in present]


def match_inputs(ports: Sequence[Port], leaves: Sequence[Leaf]) -> Inputs:
    """By name; else by order, with or without the numbers, which exporters may have fixed."""
    places = {leaf.name: at for at, leaf in enumerate(leaves) if leaf.is_input}
    if all(port.name in places for port in ports):
        return Inputs(tuple((port, places[port.name]) for port in ports))
    everything = list(places.values())
    tensors = [at for at in everything if leaves[at].kind is LeafKind.TENSOR]
    for chosen in (everything, tensors):
        if len(chosen) == len(ports):
            return Inputs(tuple(zip(ports, chosen, strict=True)))
    raise DoesNotFit(f"the file takes {_listed(p.name for p in ports)}, the model is given {_listed(places)}")


def match_outputs(ports: Sequence[Port], names: Sequence[str], values: Sequence[object]) -> tuple[tuple[str, int], ...]:
    """The name of each output with the place of its value among eager's results: by name, else by order.

    None and texts are no outputs; numbers may be, where the file has as many outputs with them. A list is one value.
    """
    numbers = [at for at, value in enumerate(values) if isinstance(value, torch.Tensor | bool | int | float | list)]
    tensors = [at for at in numbers if isinstance(values[at], torch.Tensor | list)]
    by_name = {names[at]: at for at in numbers}
    orders = [numbers, tensors]
    if len(ports) == len(numbers) and all(port.name in by_name for port in ports):
        orders.insert(0, [by_name[port.name] for port in ports])
    for chosen in orders:
        pairs = list(zip(ports, chosen, strict=False))
        if len(chosen) == len(ports) and all(fits(port, values[at]) for port, at in pairs):
            return tuple((port.name, at) for port, at in pairs)
    raise DoesNotFit(f"the file has {len(ports)} outputs, eager returns {len(numbers)} tensors and numbers")


def with_sizes_of(ports: Inputs, job: Job) -> Job:
    """The job with the free sizes that the file declares, for a request that declares none."""
    if job.free_sizes:
        return job
    leaves = list(job.leaves)
    lengths: dict[str, int] = {}
    declared = [
        (at, axis, size, int(value.shape[axis]))
        for port, at in ports.pairs
        if isinstance(value := leaves[at].value, torch.Tensor) and len(port.shape) == value.dim()
        for axis, size in enumerate(port.shape)
        if not isinstance(size, int)
    ]
    # Names first: a formula (`past + new`) speaks of them.
    for at, axis, size, length in sorted(declared, key=lambda each: not (each[2] or "").isidentifier()):
        names = names_in(size or "") or ()
        if size and names and _is_formula_here(size, names, lengths, length):
            free = AxisSize(size, tuple(map(FreeSize, names)))
        else:
            name = size if size and size.isidentifier() and size not in lengths else f"{leaves[at].name}_dim{axis}"
            lengths[name] = length
            free = AxisSize.of(FreeSize(name))
        leaves[at] = dataclasses.replace(leaves[at], axes={**leaves[at].axes, axis: free})
    return dataclasses.replace(job, leaves=tuple(leaves))


def _is_formula_here(text: str, names: Sequence[str], lengths: Mapping[str, int], length: int) -> bool:
    """Whether it is one of sizes that are known, has the length of the example, and is nowhere negative."""
    known = all(name in lengths for name in names)
    return known and computed(text, lengths) == length and computed(text, dict.fromkeys(names, 0)) >= 0


def with_fixed_numbers(job: Job, missing: Sequence[Leaf]) -> Job:
    """Numbers that the file has no input for are as in the example, unless they were declared free."""
    fixed = {leaf.name for leaf in missing if leaf.kind is LeafKind.NUMBER and not leaf.declared_free}
    leaves = tuple(
        dataclasses.replace(leaf, kind=LeafKind.CONSTANT) if leaf.name in fixed else leaf for leaf in job.leaves
    )
    return dataclasses.replace(job, leaves=leaves)


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
