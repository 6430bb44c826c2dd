"""Things that no value of ONNX can be, and of which a number may tell which one is meant: when two are the same."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any

import torch

TEXTS = (str, bytes, torch.dtype, torch.device, enum.Enum)


def all_things(*groups: Iterable[Any]) -> tuple[Any, ...]:
    """The things of all these, each once."""
    found: list[Any] = []
    for group in groups:
        found += [one for one in group if place_among(found, one) is None]
    return tuple(found)


def place_among(things: Sequence[Any], wanted: Any) -> int | None:
    return next((i for i, one in enumerate(things) if _same(one, wanted)), None)


def made_anew(things: Sequence[Any], thing: Any) -> bool:
    """Whether it is a function of the code of one of these, made once more, with names of its own around it."""
    codes = [one.__code__ for one in things if isinstance(one, FunctionType)]
    return isinstance(thing, FunctionType) and thing.__code__ in codes and place_among(things, thing) is None


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return _same_function(one, other)
    return type(one) is type(other) and isinstance(one, (*TEXTS, MethodType)) and bool(one == other)


def _same_function(one: FunctionType, other: FunctionType) -> bool:
    """`lambda a: a + h` in a loop is another function in each round, and nobody can tell: it reads the same names."""
    if one.__code__ is not other.__code__ or one.__globals__ is not other.__globals__:
        return False
    around = [
        (*(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()) for f in (one, other)
    ]
    return len(around[0]) == len(around[1]) and all(map(operator.is_, *around))
