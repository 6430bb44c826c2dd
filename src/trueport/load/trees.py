"""The tree of a structure: which containers there are, and where the leaves are in them."""

from __future__ import annotations

import dataclasses
from collections import UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from trueport.load.containers import Attributes, Container, Fields, Items, Keys, PathStep, Registered, Slice
from trueport.load.values import SYMBOLIC_NUMBERS, LeafKind, attributes_of, kind_of
from trueport.torch_internals import registered_pytree_node


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of one leaf."""

    kind: LeafKind
    known: bool = True
    inside_object: bool = False


@dataclass(frozen=True, slots=True)
class ByReference:
    """A part that is no data of the model: kept by reference."""

    value: object


@dataclass(frozen=True, slots=True)
class Back:
    """A part that is one of the containers around it, `levels` up: a cycle."""

    levels: int


@dataclass(frozen=True, slots=True)
class Branch:
    container: Container
    steps: tuple[PathStep, ...]
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list or a tuple of any number of parts like `part`. Each of its leaves is a column: that leaf of all parts."""

    cls: type
    part: Tree
    columns: int


Tree = Spot | ByReference | Back | Branch | Repeated
OpenList = Callable[[object], "tuple[Repeated, list[object]] | None"]
"""What a list whose length is open is made of, and its columns; None for anything else."""


def look(
    obj: object,
    values: list[object],
    around: list[object],
    *,
    inside_object: bool,
    open_list: OpenList | None = None,
) -> Tree:
    """The tree of `obj`; its leaves are added to `values`. `around` are the containers that are being opened."""
    if open_list is not None and (repeated := open_list(obj)) is not None:
        values += repeated[1]
        return repeated[0]
    kind = kind_of(obj)
    if kind is not None:
        if inside_object and kind is LeafKind.CONSTANT:
            return ByReference(obj)
        values.append(obj)
        if inside_object and kind is LeafKind.NUMBER:
            kind = LeafKind.NUMBER if isinstance(obj, SYMBOLIC_NUMBERS) else LeafKind.CONSTANT
            return Spot(kind, inside_object=True)
        return Spot(kind, inside_object=inside_object)
    for levels, outer in enumerate(reversed(around)):
        if outer is obj:
            return Back(levels)
    container = container_of(obj)
    if container is not None:
        return _open(container, obj, values, around, inside_object, open_list)
    attributes = attributes_of(obj)
    if attributes:
        known = len(values)
        own = Attributes(type(obj), tuple(attributes))
        branch = _open(own, obj, values, around, True, open_list)
        if inside_object or len(values) > known:
            return branch
    if inside_object:
        return ByReference(obj)
    values.append(obj)
    return Spot(LeafKind.CONSTANT, known=False)


def _open(
    container: Container,
    obj: object,
    values: list[object],
    around: list[object],
    inside_object: bool,
    open_list: OpenList | None,
) -> Branch:
    around.append(obj)
    parts = tuple(
        look(part, values, around, inside_object=inside_object, open_list=open_list) for part in container.open(obj)
    )
    around.pop()
    return Branch(container, tuple(container.steps()), parts)


def container_of(obj: Any) -> Container | None:
    """The kind of container that everybody agrees on; None for plain objects and for leaves."""
    if isinstance(obj, tuple):
        return Fields.of(obj) or Items.of(obj)
    if isinstance(obj, (list, deque)):
        return Items.of(obj)
    if isinstance(obj, (dict, UserDict)):
        return Keys.of(obj)
    if isinstance(obj, slice):
        return Slice(slice)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, (type, torch.nn.Module)):
        return Attributes.of_dataclass(obj)
    registered = registered_pytree_node(type(obj))
    if registered is not None:
        take_apart, put_together = registered
        parts, context = take_apart(obj)
        return Registered(type(obj), context, len(parts), take_apart, put_together)
    return None
