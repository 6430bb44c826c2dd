"""Arguments of another kind than a function says: told as any other mistake in a call, before anything reads them."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from trueport.load.faults import usage_error

P = ParamSpec("P")
R = TypeVar("R")
_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((numbers.Integral,), "True or False"),
    int: ((numbers.Integral,), "a whole number"),
    float: ((numbers.Real,), "a number"),
    str: ((str,), "a text"),
    os.PathLike: ((os.PathLike,), "a path"),
    Mapping: ((Mapping,), "a dict"),
    Sequence: ((Sequence,), "a list"),
    Iterable: ((Iterable,), "a list"),
    type(None): ((type(None),), "None"),
}
"""What an annotation allows, and how it is said. What is not here is looked at where it is read."""


def told_by_kind(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse an argument that is not of the kind that its annotation names."""
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        return typing.get_type_hints(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if signature.parameters[name].default is not value:
                _refuse_other(name, value, hints()[name])
        return function(*args, **kwargs)

    return checked


def _refuse_other(name: str, value: object, hint: Any) -> None:
    kinds = [typing.get_origin(kind) or kind for kind in _alternatives(hint)]
    if any(kind not in _KINDS for kind in kinds) or isinstance(
        value, tuple(t for kind in kinds for t in _KINDS[kind][0])
    ):
        return
    allowed = dict.fromkeys(_KINDS[kind][1] for kind in kinds)
    said = " or ".join(allowed)
    raise usage_error(f"{name} is of type {type(value).__name__}; it must be {said}", fix=f"give {said}")


def _alternatives(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for one in typing.get_args(hint):
            yield from _alternatives(one)
    else:
        yield hint
