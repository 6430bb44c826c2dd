"""The inputs of a file: do they fit the arguments, what does it say of their sizes, and how is it fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from trueport.load.job import Job
from trueport.verify.runtime.sandbox import Port
from trueport.verify.runtime.tensors import TensorData, dtype_of, from_torch


def misfit(ports: Sequence[Port], wanted: Sequence[str], what: str) -> str | None:
    """What is wrong with the names of a file's inputs or outputs; None where each is there and none besides."""
    present = [port.name for port in ports]
    missing = [name for name in wanted if name not in present]
    surplus = [name for name in present if name not in wanted]
    parts = [
        f"it lacks {', '.join(f'`{name}`' for name in missing)}" if missing else "",
        f"it has {', '.join(f'`{name}`' for name in surplus)} besides" if surplus else "",
    ]
    found = " and ".join(part for part in parts if part)
    return f"the {what} of the written file are not those of the model: {found}" if found else None


def feeds_for(
    job: Job, values: Sequence[object], ports: Sequence[Port], fixed: Mapping[str, torch.Tensor]
) -> dict[str, TensorData]:
    """The values of one run by input name. A Python number takes the dtype that the file declares for it."""
    declared = {port.name: dtype_of(port.type) for port in ports}
    feeds = {name: from_torch(tensor) for name, tensor in fixed.items()}
    for leaf, value in zip(job.leaves, values, strict=True):
        if not leaf.is_input:
            continue
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=getattr(torch, declared[leaf.name]))
        feeds[leaf.name] = from_torch(value)
    return feeds


def tied_sizes(job: Job, ports: Sequence[Port]) -> tuple[frozenset[str], ...]:
    """Free sizes to which the file gives one name: capture found, and reported, that they must be equal."""
    by_name: dict[str, set[str]] = {}
    for size, declared in _declared_sizes(job, ports):
        if isinstance(declared, str):
            by_name.setdefault(declared, set()).add(size)
    return tuple(frozenset(sizes) for sizes in by_name.values() if len(sizes) > 1)


def held_sizes(job: Job, ports: Sequence[Port]) -> frozenset[str]:
    """Sizes that were left to us (`Dim.AUTO`) and that the file fixes. A size that the user freed is never held."""
    automatic = {size.name for size in job.free_sizes if size.auto}
    return frozenset(
        size for size, declared in _declared_sizes(job, ports) if size in automatic and isinstance(declared, int)
    )


def _declared_sizes(job: Job, ports: Sequence[Port]) -> list[tuple[str, int | str | None]]:
    shapes = {port.name: port.shape for port in ports}
    return [
        (axis.formula, shapes[leaf.name][at])
        for leaf in job.inputs
        for at, axis in leaf.axes.items()
        if axis.is_plain and at < len(shapes.get(leaf.name, ()))
    ]
