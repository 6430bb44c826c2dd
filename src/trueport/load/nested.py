"""Inputs that lie inside another: `-i batch.image:BxTx6 -i batch.text.ids:BxS:i64` make one argument, `batch`.

It is made of what `forward` says that it takes: a dataclass or a named tuple where the parameter is annotated with one,
else a dict; where the names are 0, 1, 2, a list.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trueport.load.faults import close_to, usage_error

Tree = dict[str, Any]
"""By name: a tree, or the value of a leaf."""


def root_of(name: str) -> str:
    """The parameter that a dotted name belongs to."""
    return name.split(".", 1)[0]


def refuse_overlaps(names: Iterable[str]) -> None:
    """One input cannot be a value and hold others."""
    known = list(names)
    for name in known:
        inside = next((other for other in known if other.startswith(f"{name}.")), None)
        if inside is not None:
            raise usage_error(
                f"-i gives {name} a value, and {inside} says that it holds others",
                fix=f"name each of its parts, as in {inside}, or give {name} alone",
            )


def put_together(values: Mapping[str, Any], takes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """One value per parameter, and for each dotted name how Python writes it (`batch["text"]["ids"]`). `takes` are the
    annotations of the parameters. Raises UsageError."""
    tree: Tree = {}
    for name, value in values.items():
        *folders, last = [name] if "[" in name else name.split(".")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = _Leaf(name, value)
    paths: dict[str, str] = {}
    return {name: _build(part, takes.get(name), name, paths) for name, part in tree.items()}, paths


@dataclasses.dataclass(frozen=True)
class _Leaf:
    name: str
    value: Any


def _build(part: Tree | _Leaf, kind: Any, path: str, paths: dict[str, str]) -> Any:
    if isinstance(part, _Leaf):
        paths[part.name] = path
        return part.value
    cls = _record(kind)
    if cls is not None:
        return _built_record(cls, part, path, paths)
    if all(name.isdecimal() for name in part):
        if sorted(map(int, part)) != list(range(len(part))):
            raise usage_error(
                f"-i names the items {', '.join(part)} of {path}, and some are missing", fix=f"begin with {path}.0"
            )
        of = _argument_of(kind, 0)
        items = [_build(part[str(i)], of, f"{path}[{i}]", paths) for i in range(len(part))]
        return tuple(items) if typing.get_origin(kind) is tuple or kind is tuple else items
    of = _argument_of(kind, 1)
    return {name: _build(inner, of, f'{path}["{name}"]', paths) for name, inner in part.items()}


def _built_record(cls: Callable[..., Any], part: Tree, path: str, paths: dict[str, str]) -> Any:
    kinds = hints_of(cls)
    names = list(getattr(cls, "_fields", None) or [each.name for each in dataclasses.fields(cls)])  # type: ignore[arg-type]
    for name in part:
        if name not in names:
            raise usage_error(f"-i {path}.{name}: {cls.__name__} has no field {name!r}", fix=close_to(name, names))
    values = {name: _build(inner, kinds.get(name), f"{path}.{name}", paths) for name, inner in part.items()}
    try:
        return cls(**values)
    except Exception as wrong:  # noqa: BLE001  a class of the user's may raise anything
        raise usage_error(
            f"{path} cannot be made of {', '.join(part)}: {type(wrong).__name__}: {wrong}",
            fix=f"name every field that {cls.__name__} needs: {', '.join(names)}",
        ) from None


def hints_of(thing: Any) -> dict[str, Any]:
    """The annotations of a function or a class; none where they cannot be read."""
    try:
        return typing.get_type_hints(thing)
    except Exception:  # noqa: BLE001  an annotation may be any text
        return dict(getattr(thing, "__annotations__", {}))


def _record(kind: Any) -> Any:
    """The dataclass or named tuple that an annotation names, also beside None."""
    choices = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    for each in choices:
        if isinstance(each, type) and (dataclasses.is_dataclass(each) or hasattr(each, "_fields")):
            return each
    return None


def _argument_of(kind: Any, at: int) -> Any:
    """`list[Batch]` holds Batch, `dict[str, Batch]` as well."""
    found = typing.get_args(kind)
    return found[at] if len(found) > at else None
