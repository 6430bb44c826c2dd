"""Structures of tensors as a flat list, written here on purpose: the judge must not share code with what it judges."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence

import torch

Leaf = torch.Tensor | bool | int | float


def flatten(structure: object) -> list[Leaf]:
    """Tensors and numbers in the order of the structure; None and strings carry no data and are left out."""
    if structure is None or isinstance(structure, str):
        return []
    if isinstance(structure, torch.Tensor | bool | int | float):
        return [structure]
    if isinstance(structure, Mapping):
        return [leaf for value in structure.values() for leaf in flatten(value)]
    if isinstance(structure, Sequence):
        return [leaf for value in structure for leaf in flatten(value)]
    if dataclasses.is_dataclass(structure) and not isinstance(structure, type):
        return [leaf for field in dataclasses.fields(structure) for leaf in flatten(getattr(structure, field.name))]
    raise TypeError(f"cannot flatten a {type(structure).__name__}")


def named_arguments(
    model: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
) -> list[tuple[str, object]]:
    """The arguments of a call with the names of their parameters, in the order of the call."""
    return [*zip(_positional_names(model, len(args)), args, strict=True), *kwargs.items()]


def named_leaves(
    model: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
) -> list[tuple[str, Leaf]]:
    """Each leaf of a call with the name of its parameter; a leaf inside a structure gets `parameter_place`."""
    named = []
    for parameter, value in named_arguments(model, args, kwargs):
        inside = flatten(value)
        whole = isinstance(value, torch.Tensor | bool | int | float)
        named += [(parameter if whole else f"{parameter}_{place}", leaf) for place, leaf in enumerate(inside)]
    return named


def _positional_names(model: torch.nn.Module, count: int) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{extra}" for extra in range(count - len(names))]
        else:
            names.append(parameter.name)
    return names[:count]
