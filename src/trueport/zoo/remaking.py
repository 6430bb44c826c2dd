"""How a library calls the class of a model is watched, and done again with smaller numbers.

`timm.create_model("regnety_002")` knows the depths and widths of that model, and takes few of them as arguments. But
the class takes them all: so its constructor is watched, and called again.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch
from torch import nn

from trueport.zoo.shrinking import smaller

BLOCKS = 2
"""Of each stage."""
COUNTS = ("d", "num_modules", "block_config", "stages_repeats", "repeats", "blocks")
"""What libraries of pictures also call a number of blocks, or several of them."""


@dataclasses.dataclass(frozen=True)
class Construction:
    """A class, and what it was called with; what it takes by default is among it."""

    cls: Callable[..., Any]
    arguments: Mapping[str, Any]

    def again(self, degree: int | None, **other: Any) -> Any:
        """The degree of `shrinking`; None: as it was, but for what is given here."""
        given = (
            self.arguments
            if degree is None
            else {name: _small(name, each, degree) for name, each in self.arguments.items()}
        )
        return self.cls(**{**given, **other})


def construction_of(make: Callable[[], Any]) -> Construction | None:
    """None where the class is given modules, which are made already."""
    seen: dict[int, dict[str, Any]] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "__init__" and frame.f_code.co_argcount:
            made = frame.f_locals.get(frame.f_code.co_varnames[0])
            if isinstance(made, nn.Module) and id(made) not in seen:
                seen[id(made)] = _given(frame)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with torch.device("meta"):
            model = make()
    except Exception:  # noqa: BLE001 some constructors look at values
        return None
    finally:
        sys.setprofile(before)
    arguments = seen.get(id(model))
    if arguments is None or any(isinstance(each, nn.Module) for each in arguments.values()):
        return None
    return Construction(type(model), arguments)


def _given(frame: FrameType) -> dict[str, Any]:
    kinds = inspect.getargvalues(frame)
    given = {name: kinds.locals[name] for name in kinds.args[1:]}
    code = frame.f_code
    given |= {name: kinds.locals[name] for name in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]}
    return given | (kinds.locals[kinds.keywords] if kinds.keywords else {})


def _small(name: str, value: Any, degree: int) -> Any:
    """Also in what a class is told by: dataclasses, dicts, a list of blocks for each stage."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        return dataclasses.replace(value, **{each: _small(each, inner, degree) for each, inner in fields.items()})
    if isinstance(value, dict):
        return {each: _small(each, inner, degree) if isinstance(each, str) else inner for each, inner in value.items()}
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        if all(isinstance(stage, list) and stage and isinstance(stage[0], dict) for stage in value):
            return type(value)(stage[:BLOCKS] for stage in value)
        if any(dataclasses.is_dataclass(item) for item in value):
            return type(value)(_small(name, item, degree) for item in value)
    if name in COUNTS and type(value) is int:
        return min(value, BLOCKS)
    if name in COUNTS and isinstance(value, list | tuple) and all(type(item) is int for item in value):
        return type(value)(min(item, BLOCKS) for item in value)
    return smaller(name, value, degree)
