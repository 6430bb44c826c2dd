"""Brings a `dynamic_shapes` tree down to one entry per leaf of the arguments.

torch.export takes the declaration nested like the arguments. The same nesting is accepted here for every container that
`structures` opens; an object of the user's own is declared by a dict of its attributes, by an object of the same class
that holds the entries, by a sequence over its attributes, or by a flat sequence over its tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from trueport.load.containers import Attributes, Fields, Keys, Mismatch
from trueport.load.faults import close_to, usage_error
from trueport.load.trees import Branch, ByReference, Spot, Tree
from trueport.load.values import LeafKind


def entries_per_leaf(tree: Tree, spec: object, path: str) -> list[object]:
    """One entry per leaf under `tree`, in leaf order; None where nothing was declared."""
    if isinstance(tree, Spot):
        return [spec]
    if not isinstance(tree, Branch):
        return []
    if spec is None or (isinstance(spec, (Mapping, list, tuple)) and not spec):
        return [None] * count_leaves(tree)
    flat = _flat_over_tensors(tree, spec)
    if flat is not None:
        return flat
    found: list[object] = []
    for step, part, entry in zip(tree.steps, tree.parts, _entries_of_parts(tree, spec, path), strict=True):
        found += entries_per_leaf(part, entry, path + step.path)
    return found


def count_leaves(tree: Tree) -> int:
    if isinstance(tree, Branch):
        return sum(map(count_leaves, tree.parts))
    return int(isinstance(tree, Spot))


def _entries_of_parts(tree: Branch, spec: object, path: str) -> list[object]:
    container = tree.container
    if type(spec) is container.cls and isinstance(container, Attributes):
        try:
            return container.open(spec)
        except Mismatch as wrong:
            raise usage_error(f"dynamic_shapes of {path}: {wrong}") from None
    if isinstance(spec, Mapping) and isinstance(container, (Keys, Attributes, Fields)):
        names: Sequence[object] = container.keys if isinstance(container, Keys) else container.names
        for key in spec:
            if key not in names:
                raise usage_error(
                    f"dynamic_shapes of {path} speaks of {key!r}, which is not there",
                    fix=close_to(str(key), map(str, names)),
                )
        return [spec.get(name) for name in names]
    if isinstance(spec, (list, tuple)) and not isinstance(container, Keys):
        with_data = [i for i, part in enumerate(tree.parts) if not isinstance(part, ByReference) and count_leaves(part)]
        for places in (list(range(len(tree.parts))), with_data):
            if len(places) == len(spec):
                entries: list[object] = [None] * len(tree.parts)
                for place, entry in zip(places, spec, strict=True):
                    entries[place] = entry
                return entries
        raise usage_error(f"dynamic_shapes of {path} has {len(spec)} entries, but there are {len(tree.parts)} parts")
    raise usage_error(
        f"dynamic_shapes of {path} is {spec!r}, but {path} is a {container.cls.__name__} of several values",
        fix="nest it like the argument itself: one entry per part, None for what stays fixed",
    )


def _flat_over_tensors(tree: Branch, spec: Any) -> list[object] | None:
    """A sequence with one entry per tensor inside an object, the way torch's own flattening of a cache counts them."""
    if not isinstance(tree.container, Attributes) or not isinstance(spec, (list, tuple)):
        return None
    kinds = _kinds(tree)
    if kinds.count(LeafKind.TENSOR) != len(spec) or not all(_is_tensor_entry(entry) for entry in spec):
        return None
    entries = iter(cast(Sequence[object], spec))
    return [next(entries) if kind is LeafKind.TENSOR else None for kind in kinds]


def _kinds(tree: Tree) -> list[LeafKind]:
    if isinstance(tree, Branch):
        return [kind for part in tree.parts for kind in _kinds(part)]
    return [tree.kind] if isinstance(tree, Spot) else []


def _is_tensor_entry(entry: object) -> bool:
    return entry is None or (isinstance(entry, Mapping) and all(isinstance(axis, int) for axis in entry))
